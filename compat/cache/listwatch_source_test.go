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

func TestP11_ListerWatcherWithoutWatchListSemanticsIsListedAndWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("10", pod("a", "5"))
		i := cache.NewSharedInformer(f, &corev1.Pod{}, 0)
		start(t, i)
		if !i.HasSynced() {
			t.Error("the informer of a plain fake watcher has not synced")
		}
		assertStrings(t, "requests", f.requests(), `list rv="0" limit=500 continue=""`, `watch rv="10"`)
	})
}

// Client-go's stream sends an error event if a ping finds the connection dead. Only this
// decoding error lets the watch resume; any other leads to a relist.
func TestWatchResumesAfterItsConnectionIsLost(t *testing.T) {
	for text, asked := range map[string]string{
		"http2: client connection lost":    `watch rv="11"`,
		"invalid character 'x' in literal": `list rv="11" limit=0 continue=""`,
	} {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake("10", pod("a", "5"))
				i := cache.NewSharedInformer(f, &corev1.Pod{}, 0)
				start(t, i)
				f.current().Modify(pod("a", "11"))
				reporter := apierrors.NewClientErrorReporter(500, "GET", "ClientWatchDecoding")
				f.current().Error(reporter.AsObject(fmt.Errorf("unable to decode an event from the watch stream: %s", text)))
				f.current().Stop()
				time.Sleep(10 * time.Second) // fake time: past the first backoff
				synctest.Wait()
				if got := f.requests(); len(got) < 3 || got[2] != asked {
					t.Errorf("requests %q, want %q as the third", got, asked)
				}
			})
		})
	}
}

func TestListerWatcherWithWatchListSemanticsIsStreamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("10")
		h := &record{}
		i := cache.NewSharedInformer(streaming{f}, &corev1.Pod{}, 0)
		if _, err := i.AddEventHandler(h); err != nil {
			t.Fatal(err)
		}
		start(t, i)
		w := f.current()
		w.Add(pod("a", "5"))
		w.Add(pod("b", "7"))
		w.Delete(pod("b", "8"))
		synctest.Wait()
		if i.HasSynced() {
			t.Error("the informer synced before the bookmark")
		}
		end := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9",
			Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
		w.Action(watch.Bookmark, end)
		w.Modify(pod("a", "11"))
		synctest.Wait()
		if !i.HasSynced() {
			t.Error("the informer has not synced after the bookmark")
		}
		assertStrings(t, "received", h.take(), "add a@5 initial=true", "update a@5->11")
		assertStrings(t, "requests", f.requests(), `watchlist rv="" match=NotOlderThan bookmarks=true`)
	})
}

func TestErrorDirectlyAfterTheInitialStateLeadsToARelist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("10")
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
				w.Modify(pod("a", "12")) // events after an error are ignored
			})
			return w, nil
		}
		h := &record{}
		i := cache.NewSharedInformer(streaming{f}, &corev1.Pod{}, 0)
		if _, err := i.AddEventHandler(h); err != nil {
			t.Fatal(err)
		}
		start(t, i)
		time.Sleep(10 * time.Second) // fake time: past the first backoff
		synctest.Wait()
		assertStrings(t, "received", h.take(), "add a@5 initial=true", "update a@5->11")
		if got := f.requests(); len(got) < 2 {
			t.Errorf("requests %q, want a relist", got)
		}
	})
}

func TestServerThatRefusesToStreamIsListed(t *testing.T) {
	for name, refusal := range map[string]error{
		"invalid":   apierrors.NewInvalid(schema.GroupKind{}, "sendInitialEvents", nil),
		"forbidden": apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no watch")),
		"unknown":   errors.New("what?"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake("10", pod("a", "5"))
				f.watch = func(o metav1.ListOptions) (watch.Interface, error) {
					if o.SendInitialEvents != nil {
						return nil, refusal
					}
					return f.newWatch(), nil
				}
				i := cache.NewSharedInformer(streaming{f}, &corev1.Pod{}, 0)
				start(t, i)
				if !i.HasSynced() {
					t.Error("the informer has not synced")
				}
				assertStrings(t, "requests", f.requests(), `watchlist rv="" match=NotOlderThan bookmarks=true`,
					`list rv="0" limit=500 continue=""`, `watch rv="10"`)
			})
		})
	}
}

// A watch that cannot be opened, or that ends, resumes at its version if that is safe;
// otherwise a relist comes first.
func TestRelistOnlyIfTheWatchCannotResume(t *testing.T) {
	list, relist, resume := `list rv="0" limit=500 continue=""`, `list rv="10" limit=0 continue=""`, `watch rv="10"`
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
		"refused connection": {failed(syscall.ECONNREFUSED), []string{resume}},
		"too many requests":  {failed(apierrors.NewTooManyRequests("later", 1)), []string{resume}},
		"unavailable":        {failed(apierrors.NewServiceUnavailable("away")), []string{resume}},
		"expired":            {failed(apierrors.NewResourceExpired("old")), []string{relist, resume}},
		"forbidden": {failed(apierrors.NewForbidden(schema.GroupResource{}, "", nil)),
			[]string{relist, resume}},
		"an unknown error":        {failed(errors.New("what?")), []string{relist, resume}},
		"neither watch nor error": {failed(nil), []string{relist, resume}},
		"ends at once":            {ended(), []string{relist, resume}},
		"ends after an event":     {ended(watch.Event{Type: watch.Added, Object: pod("b", "10")}), []string{resume}},
		"stream expired":          {ended(status(apierrors.NewResourceExpired("old"))), []string{relist, resume}},
		"stream throttled":        {ended(status(apierrors.NewTooManyRequests("later", 1))), []string{resume}},
		"stream of a broken object": {ended(status(apierrors.NewInternalError(errors.New("cannot read")))),
			[]string{relist, resume}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake("10", pod("a", "5"))
				first := true
				f.watch = func(metav1.ListOptions) (watch.Interface, error) {
					if first {
						first = false
						return c.first(f)
					}
					return f.newWatch(), nil
				}
				start(t, cache.NewSharedInformer(f, &corev1.Pod{}, 0))
				time.Sleep(30 * time.Second)
				assertStrings(t, "requests", f.requests(), append([]string{list, resume}, c.then...)...)
			})
		})
	}
}

func TestP11_NoStormWhenEveryWatchEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("10", pod("a", "5"))
		f.watch = func(metav1.ListOptions) (watch.Interface, error) {
			w := watch.NewFake()
			w.Stop()
			return w, nil
		}
		start(t, cache.NewSharedInformer(f, &corev1.Pod{}, 0))
		time.Sleep(time.Hour)
		if n := len(f.requests()); n > 400 {
			t.Errorf("%d requests in an hour, want at most 400", n)
		}
	})
}

func TestListIsRepeatedWithoutPagesAfterAPageExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("10")
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
		start(t, i)
		assertStrings(t, "requests", f.requests(), `list rv="0" limit=500 continue=""`,
			`list rv="" limit=500 continue="next"`, `list rv="0" limit=0 continue=""`, `watch rv="11"`)
		if keys := i.GetStore().ListKeys(); len(keys) != 2 {
			t.Errorf("stored %v, want no object of the incomplete list", keys)
		}
	})
}

func TestP11_StopDoesNotWaitForAListFunc(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("10")
		release := make(chan struct{})
		f.list = func(metav1.ListOptions) (runtime.Object, error) {
			<-release
			return nil, errors.New("too late")
		}
		stop := start(t, cache.NewSharedInformer(f, &corev1.Pod{}, 0))
		before := time.Now()
		stop()
		if d := time.Since(before); d != 0 {
			t.Errorf("stopping took %s", d)
		}
		close(release)
	})
}

func TestP12_ObjectOfAnUnexpectedTypeIsReportedAndDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("10", pod("a", "5"))
		i := cache.NewSharedInformer(f, &corev1.Pod{}, 0)
		start(t, i)
		f.current().Add(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s", ResourceVersion: "11"}})
		f.current().Action("NONSENSE", pod("n", "12"))
		f.current().Add(pod("b", "13"))
		synctest.Wait()
		if keys := i.GetStore().ListKeys(); len(keys) != 2 {
			t.Errorf("stored %v", keys)
		}
		engine, _ := cache.Engine(i)
		if n := engine.Health().Problems["decode"]; n != 2 {
			t.Errorf("%d problems were reported, want 2", n)
		}
	})
}

// One Read returns all available events. Each must have the same effect as if it were the only one.
func TestAllEventsOfABurstAreDeliveredInOrder(t *testing.T) {
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
				f := newFake("10", pod("a", "5"))
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
				start(t, i)
				time.Sleep(10 * time.Second) // fake time: past the first backoff
				synctest.Wait()
				want, before := []string{"add a@5 initial=true"}, 5
				for n := range burst {
					want = append(want, fmt.Sprintf("update a@%d->%d", before, 101+n))
					before = 101 + n
				}
				if got := r.take(); !slices.Equal(got[:min(len(got), len(want))], want) {
					t.Errorf("received %q\nwant %q", got, want)
				}
				if got := f.requests(); len(got) < 3 || got[2] != c.next {
					t.Errorf("requests %q, want %q as the third", got, c.next)
				}
			})
		})
	}
}

func expired() *metav1.Status {
	s := apierrors.NewResourceExpired("too old").Status()
	return &s
}

func TestWatchErrorHandlerReceivesErrorsOfListsAndWatchesAndAReflector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("10")
		usual := f.list
		f.list = func(metav1.ListOptions) (runtime.Object, error) { return nil, errors.New("access denied") }
		i := cache.NewSharedInformer(f, &corev1.Pod{}, 0)
		var mu sync.Mutex
		var reported []string
		// The aliased interface names client-go's Reflector; its methods must not panic.
		err := i.SetWatchErrorHandler(handlerOf(func(name, about string, err error) {
			mu.Lock()
			defer mu.Unlock()
			reported = append(reported, fmt.Sprintf("%s %s: %v", name, about, err))
		}))
		if err != nil {
			t.Fatal(err)
		}
		start(t, i)
		f.mu.Lock()
		f.list = usual
		f.watch = func(metav1.ListOptions) (watch.Interface, error) {
			return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no"))
		}
		f.mu.Unlock()
		time.Sleep(2 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if len(reported) < 2 ||
			!strings.Contains(reported[0], "*v1.Pod *v1.Pod: failed to list *v1.Pod: access denied") ||
			!strings.Contains(reported[1], "forbidden") {
			t.Errorf("reported %q", reported)
		}
		if err := i.SetWatchErrorHandler(nil); err == nil {
			t.Error("an error handler was accepted while the informer runs")
		}
	})
}
