// Package watchdog is a small informer, built from the parts shown so far: a reflector fills a queue; for each change
// that is popped, the store is updated and a handler is called. Deltas that could not be processed are queued again,
// unless a newer change of the same object is queued.
//
// Corrected in the original program: Run ends with a context; an error of the store is returned from Pop's callback and
// the deltas are queued again with AddIfNotPresent, as the processLoop that one original prints does it (client-go has
// removed both since); an update of an object that is not stored is an add, where the original loses it; and a missed
// delete is unwrapped before it is passed to the handler.
package watchdog

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mirador-k8s/mirador/compat/cache"
)

// WatchDog keeps a store equal to the server and calls a handler for each change.
type WatchDog struct {
	h         cache.ResourceEventHandler
	onError   func(error)
	reflector *cache.Reflector
	fifo      *cache.DeltaFIFO
	store     cache.Store
}

// NewWatchDog returns a WatchDog that fills store.
func NewWatchDog(lw *cache.ListWatch, objType runtime.Object, store cache.Store, h cache.ResourceEventHandler,
	onError func(error)) *WatchDog {
	fifo := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{
		KeyFunction:  cache.MetaNamespaceKeyFunc,
		KnownObjects: store,
	})
	reflector := cache.NewReflector(lw, objType, fifo, 0)
	return &WatchDog{h: h, onError: onError, reflector: reflector, fifo: fifo, store: store}
}

// Run watches until ctx ends.
func (wd *WatchDog) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() {
		wd.reflector.Run(ctx.Done())
		wd.fifo.Close()
	})

	for {
		obj, err := wd.fifo.Pop(func(obj interface{}, isInInitialList bool) error {
			for _, delta := range obj.(cache.Deltas) {
				if err := wd.process(delta, isInInitialList); err != nil {
					return err
				}
			}
			return nil
		})
		if errors.Is(err, cache.ErrFIFOClosed) {
			return
		}
		if err != nil && ctx.Err() == nil {
			wd.onError(err)
			wd.fifo.AddIfNotPresent(obj)
		}
	}
}

// process applies one delta. It may be called again with a delta that failed, and with earlier deltas of the same
// object: a handler must tolerate that.
func (wd *WatchDog) process(delta cache.Delta, isInInitialList bool) error {
	switch delta.Type {
	case cache.Sync, cache.Added, cache.Updated:
		old, exists, err := wd.store.Get(delta.Object)
		if err != nil {
			return err
		}
		if exists {
			if err := wd.store.Update(delta.Object); err != nil {
				return err
			}
			wd.h.OnUpdate(old, delta.Object)
			return nil
		}
		if err := wd.store.Add(delta.Object); err != nil {
			return err
		}
		wd.h.OnAdd(delta.Object, isInInitialList)
	case cache.Deleted:
		if err := wd.store.Delete(delta.Object); err != nil {
			return err
		}
		last := delta.Object
		if gone, ok := last.(cache.DeletedFinalStateUnknown); ok {
			last = gone.Obj
		}
		wd.h.OnDelete(last)
	}
	return nil
}
