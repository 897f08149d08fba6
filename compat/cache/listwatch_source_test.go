package cache_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/mirador-k8s/mirador/compat/cache"
)

func TestP11_AListWatchThatSaysNothingOfWatchListIsListedAndWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := holding("10", pod("a", "5"))
		i := cache.NewSharedInformer(f, &corev1.Pod{}, 0)
		started(t, i)
		if !i.HasSynced() {
			t.Error("a plain fake watcher does not sync")
		}
		same(t, "asked", f.requests(), `list rv="0" limit=500 continue=""`, `watch rv="10"`)
	})
}

// Client-go's stream turns a connection that a ping found dead into an event. Nothing
// else that cannot be decoded is like it: then the state is read again.
func TestAWatchWhoseConnectionIsLostGoesOnWhereItWas(t *testing.T) {
	for text, asked := range map[string]string{
		"http2: client connection lost":    `watch rv="11"`,
		"invalid character 'x' in literal": `list rv="11" limit=0 continue=""`,
	} {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := holding("10", pod("a", "5"))
				i := cache.NewSharedInformer(f, &corev1.Pod{}, 0)
				started(t, i)
				f.current().Modify(pod("a", "11"))
				reporter := apierrors.NewClientErrorReporter(500, "GET", "ClientWatchDecoding")
				f.current().Error(reporter.AsObject(fmt.Errorf("unable to decode an event from the watch stream: %s", text)))
				f.current().Stop()
				time.Sleep(10 * time.Second) // fake time: past the first pause
				synctest.Wait()
				if got := f.requests(); len(got) < 3 || got[2] != asked {
					t.Errorf("asked %q, the third should be %q", got, asked)
				}
			})
		})
	}
}

func TestAListWatchThatSaysItCanStreamIsStreamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := holding("10")
		h := &record{}
		i := cache.NewSharedInformer(streaming{f}, &corev1.Pod{}, 0)
		if _, err := i.AddEventHandler(h); err != nil {
			t.Fatal(err)
		}
		started(t, i)
		w := f.current()
		w.Add(pod("a", "5"))
		w.Add(pod("b", "7"))
		w.Delete(pod("b", "8"))
		synctest.Wait()
		if i.HasSynced() {
			t.Error("synced before the bookmark")
		}
		end := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9",
			Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
		w.Action(watch.Bookmark, end)
		w.Modify(pod("a", "11"))
		synctest.Wait()
		if !i.HasSynced() {
			t.Error("not synced after the bookmark")
		}
		same(t, "told", h.take(), "add a@5 initial=true", "update a@5->11")
		same(t, "asked", f.requests(), `watchlist rv="" match=NotOlderThan bookmarks=true`)
	})
}

func TestAnErrorRightBehindTheInitialStateIsNotOverlooked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := holding("10")
		var once sync.Once
		f.watch = func(metav1.ListOptions) (watch.Interface, error) {
			w := watch.NewFakeWithChanSize(100, false)
			once.Do(func() {
				w.Add(pod("a", "5"))
				w.Action(watch.Bookmark,
					&corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9",
						Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}})
				w.Modify(pod("a", "11"))
				w.Error(expired())
				w.Modify(pod("a", "12")) // nobody vouches for what comes behind an error
			})
			return w, nil
		}
		h := &record{}
		i := cache.NewSharedInformer(streaming{f}, &corev1.Pod{}, 0)
		if _, err := i.AddEventHandler(h); err != nil {
			t.Fatal(err)
		}
		started(t, i)
		time.Sleep(10 * time.Second) // fake time: past the first pause
		synctest.Wait()
		same(t, "told", h.take(), "add a@5 initial=true", "update a@5->11")
		if got := f.requests(); len(got) < 2 {
			t.Errorf("asked %q; the state was to be read again", got)
		}
	})
}

func TestAServerThatRefusesToStreamIsListed(t *testing.T) {
	for name, refusal := range map[string]error{
		"invalid":   apierrors.NewInvalid(schema.GroupKind{}, "sendInitialEvents", nil),
		"forbidden": apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no watch")),
		"unheard":   errors.New("what?"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := holding("10", pod("a", "5"))
				f.watch = func(o metav1.ListOptions) (watch.Interface, error) {
					if o.SendInitialEvents != nil {
						return nil, refusal
					}
					return f.newWatch(), nil
				}
				i := cache.NewSharedInformer(streaming{f}, &corev1.Pod{}, 0)
				started(t, i)
				if !i.HasSynced() {
					t.Error("not synced")
				}
				same(t, "asked", f.requests(), `watchlist rv="" match=NotOlderThan bookmarks=true`,
					`list rv="0" limit=500 continue=""`, `watch rv="10"`)
			})
		})
	}
}

// What becomes of a watch that cannot be opened, or ends: whether the state is read
// again or the watch goes on where it was.
func TestTheStateIsReadAgainOnlyWhereThePlaceMayBeLost(t *testing.T) {
	list, again, goOn := `list rv="0" limit=500 continue=""`, `list rv="10" limit=0 continue=""`, `watch rv="10"`
	failed := func(err error) func(*fake) (watch.Interface, error) {
		return func(*fake) (watch.Interface, error) { return nil, err }
	}
	ended := func(with ...watch.Event) func(*fake) (watch.Interface, error) {
		return func(f *fake) (watch.Interface, error) {
			w := watch.NewFakeWithChanSize(10, false)
			for _, e := range with {
				w.Action(e.Type, e.Object)
			}
			w.Stop()
			return w, nil
		}
	}
	status := func(err *apierrors.StatusError) watch.Event {
		return watch.Event{Type: watch.Error, Object: &err.ErrStatus}
	}
	for name, c := range map[string]struct {
		first func(*fake) (watch.Interface, error)
		then  []string
	}{
		"refused connection": {failed(syscall.ECONNREFUSED), []string{goOn}},
		"too many requests":  {failed(apierrors.NewTooManyRequests("later", 1)), []string{goOn}},
		"unavailable":        {failed(apierrors.NewServiceUnavailable("away")), []string{goOn}},
		"expired":            {failed(apierrors.NewResourceExpired("old")), []string{again, goOn}},
		"forbidden": {failed(apierrors.NewForbidden(schema.GroupResource{}, "", nil)),
			[]string{again, goOn}},
		"an error nobody heard of": {failed(errors.New("what?")), []string{again, goOn}},
		"neither watch nor error":  {failed(nil), []string{again, goOn}},
		"ends at once":             {ended(), []string{again, goOn}},
		"ends after an event":      {ended(watch.Event{Type: watch.Added, Object: pod("b", "10")}), []string{goOn}},
		"stream expired":           {ended(status(apierrors.NewResourceExpired("old"))), []string{again, goOn}},
		"stream throttled":         {ended(status(apierrors.NewTooManyRequests("later", 1))), []string{goOn}},
		"stream of a broken object": {ended(status(apierrors.NewInternalError(errors.New("cannot read")))),
			[]string{again, goOn}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := holding("10", pod("a", "5"))
				first := true
				f.watch = func(metav1.ListOptions) (watch.Interface, error) {
					if first {
						first = false
						return c.first(f)
					}
					return f.newWatch(), nil
				}
				started(t, cache.NewSharedInformer(f, &corev1.Pod{}, 0))
				time.Sleep(30 * time.Second)
				same(t, "asked", f.requests(), append([]string{list, goOn}, c.then...)...)
			})
		})
	}
}

func TestP11_AWatchThatAlwaysEndsAtOnceIsNoStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := holding("10", pod("a", "5"))
		f.watch = func(metav1.ListOptions) (watch.Interface, error) {
			w := watch.NewFake()
			w.Stop()
			return w, nil
		}
		started(t, cache.NewSharedInformer(f, &corev1.Pod{}, 0))
		time.Sleep(time.Hour)
		if n := len(f.requests()); n > 400 {
			t.Errorf("%d requests in an hour", n)
		}
	})
}

func TestPagesThatExpireAreTakenInOnePiece(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := holding("10")
		f.list = func(o metav1.ListOptions) (runtime.Object, error) {
			switch {
			case o.Continue != "":
				return nil, apierrors.NewResourceExpired("the page is gone")
			case o.Limit != 0:
				return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "10", Continue: "next"},
					Items: []corev1.Pod{*pod("gone", "1")}}, nil
			}
			return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "11"},
				Items: []corev1.Pod{*pod("a", "5"), *pod("b", "6")}}, nil
		}
		i := cache.NewSharedInformer(f, &corev1.Pod{}, 0)
		started(t, i)
		same(t, "asked", f.requests(), `list rv="0" limit=500 continue=""`, `list rv="" limit=500 continue="next"`,
			`list rv="0" limit=0 continue=""`, `watch rv="11"`)
		if keys := i.GetStore().ListKeys(); len(keys) != 2 {
			t.Errorf("stored %v; nothing of the broken list may stay", keys)
		}
	})
}

func TestP11_AListThatDoesNotReturnDoesNotHoldUpTheStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := holding("10")
		release := make(chan struct{})
		f.list = func(metav1.ListOptions) (runtime.Object, error) {
			<-release
			return nil, errors.New("too late")
		}
		stop := started(t, cache.NewSharedInformer(f, &corev1.Pod{}, 0))
		begun := time.Now()
		stop()
		if d := time.Since(begun); d != 0 {
			t.Errorf("stopping took %s", d)
		}
		close(release)
	})
}

func TestP12_WhatIsNotWhatWasAskedForIsReportedAndDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := holding("10", pod("a", "5"))
		i := cache.NewSharedInformer(f, &corev1.Pod{}, 0)
		started(t, i)
		f.current().Add(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s", ResourceVersion: "11"}})
		f.current().Action("NONSENSE", pod("n", "12"))
		f.current().Add(pod("b", "13"))
		synctest.Wait()
		if keys := i.GetStore().ListKeys(); len(keys) != 2 {
			t.Errorf("stored %v", keys)
		}
		engine, _ := cache.Engine(i)
		if n := engine.Health().Problems["decode"]; n != 2 {
			t.Errorf("%d objects were reported, want 2", n)
		}
	})
}

// Events that wait for their reader are taken many at a time; each counts as if it had come alone.
func TestAllEventsOfABurstAreToldInOrderUpToItsEnd(t *testing.T) {
	const burst = 45
	ends := map[string]struct {
		end  func(w *watch.FakeWatcher)
		next string
	}{
		"closed":   {func(w *watch.FakeWatcher) { w.Stop() }, `watch rv="145"`},
		"expired":  {func(w *watch.FakeWatcher) { w.Error(expired()) }, `list rv="145" limit=0 continue=""`},
		"bookmark": {func(w *watch.FakeWatcher) { w.Action(watch.Bookmark, pod("", "200")); w.Stop() }, `watch rv="200"`},
	}
	for name, c := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := holding("10", pod("a", "5"))
				var once sync.Once
				f.watch = func(metav1.ListOptions) (watch.Interface, error) {
					w := watch.NewFakeWithChanSize(100, false)
					once.Do(func() {
						for n := range burst {
							w.Modify(pod("a", fmt.Sprint(101+n)))
						}
						c.end(w)
					})
					return w, nil
				}
				i := cache.NewSharedInformer(f, &corev1.Pod{}, 0)
				r := &record{}
				if _, err := i.AddEventHandler(r); err != nil {
					t.Fatal(err)
				}
				started(t, i)
				time.Sleep(10 * time.Second) // fake time: past the first pause
				synctest.Wait()
				want, before := []string{"add a@5 initial=true"}, 5
				for n := range burst {
					want = append(want, fmt.Sprintf("update a@%d->%d", before, 101+n))
					before = 101 + n
				}
				if got := r.take(); !slices.Equal(got[:min(len(got), len(want))], want) {
					t.Errorf("told %q\nwant %q", got, want)
				}
				if got := f.requests(); len(got) < 3 || got[2] != c.next {
					t.Errorf("asked %q, the third should be %q", got, c.next)
				}
			})
		})
	}
}

func expired() *metav1.Status {
	s := apierrors.NewResourceExpired("too old").Status()
	return &s
}

func TestTheErrorHandlerHearsOfListsAndWatchesThatFailAndGetsAReflector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := holding("10")
		fine := f.list
		f.list = func(metav1.ListOptions) (runtime.Object, error) { return nil, errors.New("access denied") }
		i := cache.NewSharedInformer(f, &corev1.Pod{}, 0)
		var mu sync.Mutex
		var heard []string
		// The aliased interface names client-go's Reflector; its methods must not panic.
		err := i.SetWatchErrorHandler(handlerOf(func(name, about string, err error) {
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, fmt.Sprintf("%s %s: %v", name, about, err))
		}))
		if err != nil {
			t.Fatal(err)
		}
		started(t, i)
		f.mu.Lock()
		f.list = fine
		f.watch = func(metav1.ListOptions) (watch.Interface, error) {
			return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no"))
		}
		f.mu.Unlock()
		time.Sleep(2 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if len(heard) < 2 || !strings.Contains(heard[0], "*v1.Pod *v1.Pod: failed to list *v1.Pod: access denied") ||
			!strings.Contains(heard[1], "forbidden") {
			t.Errorf("heard %q", heard)
		}
		if err := i.SetWatchErrorHandler(nil); err == nil {
			t.Error("a handler was accepted while it runs")
		}
	})
}
