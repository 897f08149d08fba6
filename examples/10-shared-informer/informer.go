// Package sharedinformer is a shared informer built by hand from a reflector, a queue, a store and many handlers.
//
// It shows a mistake of the original next to its correction. Before an update the original reads the old object and
// continues if "err != nil && exists". That is never true, so every update is lost, and the store keeps the state in
// which it first saw a pod. The condition must be "err == nil && exists".
//
// Also corrected: the original's Run has no end, and a missed delete must be unwrapped. The processor, which client-go
// does not export, is package fanout.
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

// MySharedInformer lists and watches, stores, and calls many handlers.
type MySharedInformer struct {
	// processor calls the handlers, each at its own pace.
	processor *fanout.Fanout[any]
	seq       uint64
	// reflector lists and watches, and fills fifo.
	reflector *cache.Reflector
	// fifo holds the unprocessed changes of each object.
	fifo *cache.DeltaFIFO
	// store is the local copy; an Indexer if it has indexes.
	store cache.Store
	// found reports whether the store returned the old state of an update.
	found func(exists bool, err error) bool
}

// NewMySharedInformer returns an informer that fills store, whose key function must accept a DeletedFinalStateUnknown.
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

// Run works until ctx ends, and returns after the last callback.
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
	key, _ := cache.MetaNamespaceKeyFunc(cmp.Or(e.New, e.Old)) // the store has computed this key before
	e.Key = object.Key(key)
	msi.processor.Publish(msi.seq, []object.Event[any]{e})
}
