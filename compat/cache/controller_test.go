package cache_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mirador-k8s/mirador/compat/cache"
)

// running runs something in the test's bubble until the test ends.
func running(t *testing.T, run func(context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	synctest.Wait()
}

func TestAnInformerOfOneHandlerTellsWhatASharedOneTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := holding("10", pod("a", "1"), pod("b", "2"))
		h := &record{}
		store, controller := cache.NewIndexerInformer(f, &corev1.Pod{}, time.Minute, h, cache.Indexers{"name": byName})
		running(t, controller.RunWithContext)
		same(t, "first", h.take(), "add a@1 initial=true", "add b@2 initial=true")
		if !controller.HasSynced() || controller.LastSyncResourceVersion() != "10" {
			t.Errorf("synced %v at %q", controller.HasSynced(), controller.LastSyncResourceVersion())
		}
		f.current().Modify(pod("a", "11"))
		f.current().Delete(pod("b", "12"))
		synctest.Wait()
		same(t, "then", h.take(), "update a@1->11", "delete b@12")
		time.Sleep(time.Minute)
		synctest.Wait()
		same(t, "resync", h.take(), "update a@11->11")
		f.set("20", pod("c", "15"))
		f.relist()
		same(t, "relist", h.take(), "missed delete web/a@11", "add c@15 initial=false")
		if got, err := store.ByIndex("name", "c"); err != nil || len(got) != 1 {
			t.Errorf("by index: %v, %v", got, err)
		}
	})
}

func TestAControllerReportsListsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := holding("10")
		f.list = func(metav1.ListOptions) (runtime.Object, error) { return nil, errors.New("no") }
		var heard []string
		running(t, cache.New(&cache.Config{
			Queue: cache.NewDeltaFIFO(cache.MetaNamespaceKeyFunc, nil), ListerWatcher: f, ObjectType: &corev1.Pod{},
			Process: func(any, bool) error { return nil },
			WatchErrorHandler: func(r *cache.Reflector,
				err error) {
				heard = append(heard, r.TypeDescription()+": "+err.Error())
			},
		}).RunWithContext)
		same(t, "heard", heard, "*v1.Pod: failed to list *v1.Pod: no")
	})
}

// Without known objects a queue cannot tell that something is gone; with a store it
// can.
func TestAReflectorIntoAQueueFindsDeletionsOnlyWithKnownObjects(t *testing.T) {
	for name, c := range map[string]struct {
		known bool
		want  []string
	}{
		"without": {false, nil},
		"with":    {true, []string{"Deleted"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := holding("10", pod("a", "1"))
				store := cache.NewStore(cache.MetaNamespaceKeyFunc)
				o := cache.DeltaFIFOOptions{EmitDeltaTypeReplaced: true}
				if c.known {
					o.KnownObjects = store
				}
				q := cache.NewDeltaFIFOWithOptions(o)
				r := cache.NewReflector(f, &corev1.Pod{}, q, 0)
				running(t, r.RunWithContext)
				var types []string
				pop := func() {
					if len(q.ListKeys()) == 0 {
						return
					}
					if _, err := q.Pop(func(obj any, _ bool) error {
						for _, d := range obj.(cache.Deltas) {
							types = append(types, string(d.Type))
							if d.Type != cache.Deleted {
								return store.Add(d.Object)
							}
						}
						return nil
					}); err != nil {
						t.Error(err)
					}
				}
				pop()
				same(t, "first", types, "Replaced")
				types = nil
				f.current().Delete(pod("a", "11"))
				synctest.Wait()
				pop()
				same(t, "deleted", types, c.want...)
				if r.LastSyncResourceVersion() != "11" {
					t.Errorf("version %q", r.LastSyncResourceVersion())
				}
			})
		})
	}
}
