// Package sharedinformer puts a reflector, a queue, a store and many handlers
// together: a shared informer, made by hand.
//
// It shows a mistake of the original next to its correction. Before an update the original
// asks for the old object and goes on if "err != nil && exists": which is never, so
// that every update is swallowed, and the store keeps the state in which it first
// saw a pod. It has to be "err == nil && exists".
//
// Also corrected: the original's Run has no end, and a delete that was missed has to be
// unwrapped. The processor, which client-go does not export, is package fanout.
package sharedinformer

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mirador-k8s/mirador/compat/cache"
	"github.com/mirador-k8s/mirador/fanout"
	"github.com/mirador-k8s/mirador/object"
)

// MySharedInformer lists and watches, stores and tells many.
type MySharedInformer struct {
	// processor calls the handlers, each at its own pace.
	processor *fanout.Fanout[any]
	seq       uint64
	// reflector lists and watches, and puts what it sees into fifo.
	reflector *cache.Reflector
	// fifo holds for each object what happened to it and was not looked at yet.
	fifo *cache.DeltaFIFO
	// store is the local copy; an Indexer where it is to be searched.
	store cache.Store
	// found says whether what the store answered is the old state of an update.
	found func(exists bool, err error) bool
}

// NewMySharedInformer makes one that keeps what it sees in store, whose key
// function must be able to read a DeletedFinalStateUnknown.
func NewMySharedInformer(lw *cache.ListWatch, objType runtime.Object, store cache.Store) *MySharedInformer {
	fifo := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{
		KeyFunction:  cache.MetaNamespaceKeyFunc,
		KnownObjects: store,
	})
	return &MySharedInformer{
		processor: fanout.New[any](fanout.Options{}),
		reflector: cache.NewReflector(lw, objType, fifo, 0),
		fifo:      fifo,
		store:     store,
		found:     func(exists bool, err error) bool { return err == nil && exists },
	}
}

// AsInTheOriginal gives the informer the original's mistake.
func (msi *MySharedInformer) AsInTheOriginal() *MySharedInformer {
	msi.found = func(exists bool, err error) bool { return err != nil && exists }
	return msi
}

// AddEventHandler adds a handler; call it before Run.
func (msi *MySharedInformer) AddEventHandler(handler cache.ResourceEventHandler) error {
	_, err := msi.processor.Join(fanout.HandlerOptions[any]{Handle: func(e object.Event[any]) {
		switch e.Type {
		case object.Added:
			handler.OnAdd(e.New, e.Initial)
		case object.Updated:
			handler.OnUpdate(e.Old, e.New)
		case object.Deleted:
			handler.OnDelete(e.Old)
		}
	}})
	return err
}

// Run works until ctx ends, and returns when the last callback has.
func (msi *MySharedInformer) Run(ctx context.Context) error {
	var running sync.WaitGroup
	running.Go(func() {
		msi.reflector.Run(ctx.Done())
		msi.fifo.Close()
	})
	for {
		_, err := msi.fifo.Pop(func(obj interface{}, isInInitialList bool) error {
			for _, delta := range obj.(cache.Deltas) {
				msi.process(delta, isInInitialList)
			}
			return nil
		})
		if errors.Is(err, cache.ErrFIFOClosed) {
			break
		}
	}
	running.Wait()
	return msi.processor.Stop(context.WithoutCancel(ctx))
}

func (msi *MySharedInformer) process(delta cache.Delta, isInInitialList bool) {
	switch delta.Type {
	case cache.Sync, cache.Added:
		msi.store.Add(delta.Object)
		msi.distribute(object.Event[any]{Type: object.Added, New: delta.Object, Initial: isInInitialList})
	case cache.Updated:
		if old, exists, err := msi.store.Get(delta.Object); msi.found(exists, err) {
			msi.store.Update(delta.Object)
			msi.distribute(object.Event[any]{Type: object.Updated, Old: old, New: delta.Object})
		}
	case cache.Deleted:
		msi.store.Delete(delta.Object)
		last := delta.Object
		if gone, ok := last.(cache.DeletedFinalStateUnknown); ok {
			last = gone.Obj
		}
		msi.distribute(object.Event[any]{Type: object.Deleted, Old: last})
	}
}

func (msi *MySharedInformer) distribute(e object.Event[any]) {
	msi.seq++
	key, _ := cache.MetaNamespaceKeyFunc(cmp.Or(e.New, e.Old)) // the store has found it before
	e.Key = object.Key(key)
	msi.processor.Publish(msi.seq, []object.Event[any]{e})
}
