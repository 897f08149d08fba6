package factory_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/factory"
	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/informertest"
)

// A lister reads a complete state or returns ErrNotSynced, also while its resource is stopped and started: a caller
// that gets NotFound may clean up.
func TestListerReturnsCompleteStateOrErrNotSyncedDuringStop(t *testing.T) {
	const objects, rounds = 20, 60
	s := informertest.NewServer()
	cfg, closePipe := informertest.Pipe(s)
	defer closePipe()
	for n := range objects {
		if _, err := s.Create(pod("a", fmt.Sprintf("pod-%d", n), "app=web")); err != nil {
			t.Fatal(err)
		}
	}
	f, err := factory.New(cfg, &factory.Options{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	h := open[*factory.Handle[*corev1.Pod]](t)(factory.Of[*corev1.Pod](f, nil))
	if err := h.AddIndex("app", byApp); err != nil {
		t.Fatal(err)
	}
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	reads := map[string]func() (int, error){
		"Get": func() (int, error) {
			_, err := h.Lister().Get("a", "pod-7")
			return objects, err
		},
		"List": func() (int, error) {
			all, err := h.Lister().List(nil)
			return len(all), err
		},
		"List of a namespace": func() (int, error) {
			all, err := h.Lister().InNamespace("a").List(nil)
			return len(all), err
		},
		"ByIndex": func() (int, error) {
			all, err := h.Lister().ByIndex("app", "web")
			return len(all), err
		},
	}
	var done atomic.Bool
	var readers sync.WaitGroup
	for name, read := range reads {
		readers.Go(func() {
			answers, wrong := 0, 0
			var example string
			for !done.Load() {
				switch n, err := read(); {
				case errors.Is(err, factory.ErrNotSynced):
				case err != nil:
					wrong++
					example = err.Error()
				case n != objects:
					wrong++
					example = fmt.Sprintf("%d of %d objects and no error", n, objects)
				default:
					answers++
				}
				runtime.Gosched()
			}
			if wrong > 0 {
				t.Errorf("%s was wrong %d times, for example: %s", name, wrong, example)
			}
			if answers == 0 {
				t.Errorf("%s never answered", name)
			}
		})
	}
	for range rounds {
		wait(t, f.WaitForSync)
		wait(t, f.Stop)
		if err := f.Start(t.Context()); err != nil {
			t.Error(err)
		}
	}
	wait(t, f.WaitForSync)
	done.Store(true)
	readers.Wait()
	wait(t, f.Stop)
}

func wait(t *testing.T, until func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := until(ctx); err != nil {
		t.Error(err)
	}
}

// After a stop, and after the Release of the last user, the factory refers to no mirrored object, whatever handles,
// listers and subscriptions the users still have.
func TestP9_StoppedFactoryHoldsNoObjects(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(w *fixture, h *factory.Handle[*corev1.Pod])
	}{
		{"Stop", func(w *fixture, _ *factory.Handle[*corev1.Pod]) { w.stop() }},
		{"Release", func(w *fixture, h *factory.Handle[*corev1.Pod]) {
			h.Release()
			w.stop()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			withFactory(t, nil, func(w *fixture) {
				w.create(pod("a", "one"))
				h := pods(w, nil)
				lister := h.Lister()
				sub := open[*factory.Subscription](w)(h.Subscribe(informer.Funcs[*corev1.Pod]{}, nil))
				w.start()
				w.sync()
				obj, err := lister.Get("a", "one")
				if err != nil {
					t.Fatal(err)
				}
				var freed atomic.Bool
				runtime.AddCleanup(obj, func(f *atomic.Bool) { f.Store(true) }, &freed)
				obj = nil
				c.end(w, h)
				for range 10 {
					runtime.GC()
				}
				time.Sleep(time.Second) // fake time: let the cleanup's goroutine run
				if !freed.Load() {
					t.Error("a stopped factory still holds mirrored objects")
				}
				runtime.KeepAlive(sub)
				runtime.KeepAlive(lister)
				runtime.KeepAlive(h)
			})
		})
	}
}
