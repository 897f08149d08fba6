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

// runInBackground calls run in a goroutine of the test's bubble and cancels its context when the test ends.
func runInBackground(t *testing.T, run func(context.Context)) {
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

func TestInformerSendsItsHandlerTheEventsOfASharedInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("10", pod("a", "1"), pod("b", "2"))
		h := &record{}
		store, controller := cache.NewIndexerInformer(f, &corev1.Pod{}, time.Minute, h, cache.Indexers{"name": byName})
		runInBackground(t, controller.RunWithContext)
		assertStrings(t, "first", h.take(), "add a@1 initial=true", "add b@2 initial=true")
		if !controller.HasSynced() || controller.LastSyncResourceVersion() != "10" {
			t.Errorf("HasSynced is %v and the version is %q", controller.HasSynced(), controller.LastSyncResourceVersion())
		}
		f.current().Modify(pod("a", "11"))
		f.current().Delete(pod("b", "12"))
		synctest.Wait()
		assertStrings(t, "then", h.take(), "update a@1->11", "delete b@12")
		time.Sleep(time.Minute)
		synctest.Wait()
		assertStrings(t, "resync", h.take(), "update a@11->11")
		f.set("20", pod("c", "15"))
		f.relist()
		assertStrings(t, "relist", h.take(), "missed delete web/a@11", "add c@15 initial=false")
		if got, err := store.ByIndex("name", "c"); err != nil || len(got) != 1 {
			t.Errorf("by index: %v, %v", got, err)
		}
	})
}

func TestControllerReportsFailedListsToItsErrorHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("10")
		f.list = func(metav1.ListOptions) (runtime.Object, error) { return nil, errors.New("no") }
		var reported []string
		runInBackground(t, cache.New(&cache.Config{
			Queue: cache.NewDeltaFIFO(cache.MetaNamespaceKeyFunc, nil), ListerWatcher: f, ObjectType: &corev1.Pod{},
			Process: func(any, bool) error { return nil },
			WatchErrorHandler: func(r *cache.Reflector,
				err error) {
				reported = append(reported, r.TypeDescription()+": "+err.Error())
			},
		}).RunWithContext)
		assertStrings(t, "reported", reported, "*v1.Pod: failed to list *v1.Pod: no")
	})
}

// A queue without known objects ignores the deletion of an object that is not queued.
func TestReflectorQueuesADeletionOnlyWithKnownObjects(t *testing.T) {
	for name, c := range map[string]struct {
		known bool
		want  []string
	}{
		"without": {false, nil},
		"with":    {true, []string{"Deleted"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake("10", pod("a", "1"))
				store := cache.NewStore(cache.MetaNamespaceKeyFunc)
				o := cache.DeltaFIFOOptions{EmitDeltaTypeReplaced: true}
				if c.known {
					o.KnownObjects = store
				}
				q := cache.NewDeltaFIFOWithOptions(o)
				r := cache.NewReflector(f, &corev1.Pod{}, q, 0)
				runInBackground(t, r.RunWithContext)
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
				assertStrings(t, "first", types, "Replaced")
				types = nil
				f.current().Delete(pod("a", "11"))
				synctest.Wait()
				pop()
				assertStrings(t, "deleted", types, c.want...)
				if r.LastSyncResourceVersion() != "11" {
					t.Errorf("version %q", r.LastSyncResourceVersion())
				}
			})
		})
	}
}
