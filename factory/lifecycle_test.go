package factory_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/factory"
	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/informertest"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
)

func selector(t testing.TB, s string) labels.Selector {
	t.Helper()
	sel, err := labels.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return sel
}

func TestInformerOpenedAfterStartRunsAtOnce(t *testing.T) {
	withFactory(t, nil, func(w *fixture) {
		w.create(pod("a", "one"))
		w.start()
		w.sync() // no resource is open, so this returns at once
		h := pods(w, nil)
		w.sync()
		if got := names[*corev1.Pod](t)(h.Lister().List(nil)); got != "[a/one]" {
			t.Errorf("List = %s", got)
		}
	})
}

func TestP9_StopWaitsForCallbacksAndNamesThoseStillRunning(t *testing.T) {
	withFactory(t, nil, func(w *fixture) {
		h := pods(w, nil)
		running, let := make(chan struct{}), make(chan struct{})
		open[any](w)(h.Subscribe(informer.Funcs[*corev1.Pod]{OnAdd: func(*corev1.Pod, bool) {
			close(running)
			<-let
		}}, &informer.HandlerOptions{Name: "slow handler"}))
		w.start()
		w.create(pod("a", "stuck"))
		<-running
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		err := w.f.Stop(ctx)
		wantError(t, err, "pods.v1", "slow handler", "a/stuck")
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is not the context's: %v", err)
		}
		close(let)
		w.stop()
		synctest.Wait()
		if n := w.OpenWatches(); n != 0 {
			t.Errorf("%d watches are open after Stop", n)
		}
	})
}

func TestP9_StopWaitsAsLongAsItsContextAllows(t *testing.T) {
	withFactory(t, nil, func(w *fixture) {
		h := pods(w, nil)
		running := make(chan struct{})
		open[any](w)(h.Subscribe(informer.Funcs[*corev1.Pod]{OnAdd: func(*corev1.Pod, bool) {
			close(running)
			time.Sleep(40 * time.Second) // fake time; longer than an informer waits by itself
		}}, nil))
		w.start()
		w.create(pod("a", "slow"))
		<-running
		began := time.Now()
		w.stop() // within a minute
		if took := time.Since(began); took < 40*time.Second {
			t.Errorf("Stop returned after %s, before the callback did", took)
		}
	})
}

func TestP9_StopReportsCallbacksOfReleasedInformers(t *testing.T) {
	withFactory(t, nil, func(w *fixture) {
		h := pods(w, nil)
		running, let := make(chan struct{}), make(chan struct{})
		open[any](w)(h.Subscribe(informer.Funcs[*corev1.Pod]{OnAdd: func(*corev1.Pod, bool) {
			close(running)
			<-let
		}}, &informer.HandlerOptions{Name: "left behind"}))
		w.start()
		w.create(pod("a", "one"))
		<-running
		h.Release()
		time.Sleep(time.Minute) // fake time: the informer's stop timeout passes
		err := w.f.Stop(w.Context())
		close(let)
		wantError(t, err, "left behind")
		synctest.Wait()
	})
}

func TestSecondStartKeepsHandlersAndListers(t *testing.T) {
	withFactory(t, nil, func(w *fixture) {
		w.create(pod("a", "one"))
		h := pods(w, nil)
		lister := h.Lister()
		var mu sync.Mutex
		var adds []object.Key
		sub, err := h.Subscribe(informer.HandlerFunc[*corev1.Pod](func(e object.Event[*corev1.Pod]) {
			mu.Lock()
			defer mu.Unlock()
			if e.Type == object.Added && e.Initial {
				adds = append(adds, e.Key)
			}
		}), &informer.HandlerOptions{Name: "counter"})
		if err != nil {
			t.Fatal(err)
		}
		for round := 1; round <= 3; round++ {
			w.start()
			w.sync()
			if err := sub.WaitSynced(w.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := lister.Get("a", "one"); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			if len(adds) != round {
				t.Fatalf("round %d: the handler saw %d initial adds", round, len(adds))
			}
			if hs := w.f.Health(); len(hs[0].Handlers) != 1 {
				t.Fatalf("round %d: %d handlers", round, len(hs[0].Handlers))
			}
			w.stop()
			if _, err := lister.Get("a", "one"); !errors.Is(err, factory.ErrNotSynced) || apierrors.IsNotFound(err) {
				t.Fatalf("List after Stop: %v", err)
			}
			synctest.Wait() // until the server has noticed
			if n := w.OpenWatches(); n != 0 {
				t.Fatalf("round %d: %d watches are open after Stop", round, n)
			}
		}
		sub.Remove()
		w.start()
		w.sync()
		synctest.Wait()
		if len(adds) != 3 {
			t.Error("a handler that was removed while the factory was stopped was called")
		}
	})
}

func TestStartWorksAgainAfterItsContextHasEnded(t *testing.T) {
	withFactory(t, nil, func(w *fixture) {
		w.create(pod("a", "one"))
		h := pods(w, nil)
		ctx, cancel := context.WithCancel(w.Context())
		if err := w.f.Start(ctx); err != nil {
			t.Fatal(err)
		}
		if err := w.f.Start(ctx); err == nil || !strings.Contains(err.Error(), "already started") {
			t.Errorf("a second Start: %v", err)
		}
		w.sync()
		cancel()
		if err := w.f.WaitForSync(w.Context()); err == nil || !strings.Contains(err.Error(), "call Start first") {
			t.Errorf("waiting after the end: %v", err)
		}
		w.start() // at once, while the old run is ending
		w.sync()
		if _, err := h.Lister().Get("a", "one"); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if n := w.OpenWatches(); n != 1 {
			t.Errorf("%d watches are open, want 1", n)
		}
		if err := w.f.Start(ctx); err == nil {
			t.Error("Start with an ended context returned no error")
		}
	})
}

func TestWaitForSyncNamesUnsyncedInformersAndReasons(t *testing.T) {
	withFactory(t, &factory.Options{Cluster: "eu"}, func(w *fixture) {
		w.Inject(informertest.Fault{Resource: "configmaps", Code: 403})
		if err := w.f.WaitForSync(w.Context()); err == nil || !strings.Contains(err.Error(), "call Start first") {
			t.Errorf("before the start: %v", err)
		}
		pods(w, nil)
		open[any](w)(factory.Of[*corev1.ConfigMap](w.f, nil))
		unknown := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "deployments"}
		open[any](w)(w.f.Dynamic(unknown, nil))
		w.start()
		ctx, cancel := context.WithTimeout(w.Context(), 20*time.Second)
		defer cancel()
		err := w.f.WaitForSync(ctx)
		wantError(t, err, "2 of 3", "eu/configmaps.v1 is retrying", "forbidden",
			"eu/deployments.v1.example.com(dynamic) is not served", "did you mean deployments.v1.apps?")
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the context's error is not in it: %v", err)
		}
		e, ok := errors.AsType[*factory.SyncError](err)
		if !ok || len(e.Waiting) != 2 || source.ReasonOf(e.Waiting[0].Reflector.Err) != source.Denied {
			t.Errorf("the error's data: %+v", e)
		}
	})
}

func TestWaitForSyncIgnoresReleasedInformers(t *testing.T) {
	withFactory(t, nil, func(w *fixture) {
		w.Inject(informertest.Fault{Resource: "pods", Code: 500})
		h := pods(w, nil)
		w.start()
		waited := make(chan error)
		go func() { waited <- w.f.WaitForSync(context.Background()) }()
		synctest.Wait()
		h.Release()
		if err := <-waited; err != nil {
			t.Error(err)
		}
	})
}

func TestReadBeforeSyncReturnsErrNotSynced(t *testing.T) {
	withFactory(t, nil, func(w *fixture) {
		w.create(pod("a", "one"))
		h := pods(w, nil)
		for _, read := range []func() error{
			func() error { _, err := h.Lister().Get("a", "one"); return err },
			func() error { _, err := h.Lister().List(nil); return err },
			func() error { _, err := h.Lister().InNamespace("a").List(nil); return err },
			func() error { _, err := h.Lister().ByIndex("x", "y"); return err },
		} {
			if err := read(); !errors.Is(err, factory.ErrNotSynced) || apierrors.IsNotFound(err) {
				t.Errorf("before the sync: %v", err)
			}
		}
		w.start()
		w.sync()
		_, err := h.Lister().InNamespace("a").Get("none")
		if !apierrors.IsNotFound(err) {
			t.Errorf("a pod that does not exist: %v", err)
		}
		wantError(t, err, "a/none", "pods.v1")
		if got := names[*corev1.Pod](t)(h.Lister().InNamespace("").List(selector(t, "x"))); got != "[]" {
			t.Errorf("List = %s", got)
		}
	})
}

func TestResyncTransformAndTweakApplyToInformers(t *testing.T) {
	var transformed atomic.Int32
	opts := &factory.Options{
		Resync: time.Hour,
		Types: []factory.TypeOption{
			factory.ForType(factory.TypeOptions[metav1.Object]{Transform: func(o metav1.Object) (metav1.Object, error) {
				o.SetManagedFields(nil)
				transformed.Add(1)
				return o, nil
			}}),
			factory.ForType(factory.TypeOptions[*corev1.Pod]{
				Resync: time.Minute,
				Transform: func(p *corev1.Pod) (*corev1.Pod, error) {
					p.Annotations = map[string]string{"seen": "yes"}
					return p, nil
				},
			}),
		},
		Tweak:        func(o *metav1.ListOptions) { o.LabelSelector = "app=web" },
		WatchTimeout: 7 * time.Minute,
	}
	withFactory(t, opts, func(w *fixture) {
		w.create(pod("a", "one", "app=web"), pod("a", "two"))
		h := pods(w, nil)
		var resyncs int
		open[any](w)(h.Subscribe(informer.HandlerFunc[*corev1.Pod](func(e object.Event[*corev1.Pod]) {
			if e.Type == object.Resynced {
				resyncs++
			}
		}), nil))
		w.start()
		w.sync()
		objs, err := h.Lister().List(nil)
		if err != nil || len(objs) != 1 || objs[0].Annotations["seen"] != "yes" {
			t.Fatalf("List = %v, %v; want the one tweaked and transformed pod", objs, err)
		}
		if n := transformed.Load(); n != 1 {
			t.Errorf("%d transforms, want 1", n)
		}
		time.Sleep(150 * time.Second)
		synctest.Wait()
		if resyncs != 2 {
			t.Errorf("%d resyncs in 2.5 minutes, want 2", resyncs)
		}
		for _, r := range w.Requests() {
			if r.Verb == "watch" && r.Query.Get("timeoutSeconds") < "420" {
				t.Errorf("a watch was asked to last %s seconds", r.Query.Get("timeoutSeconds"))
			}
		}
	})
}

func TestP12_TransformThatChangesTheTypeIsReported(t *testing.T) {
	problems := make(chan informer.Problem, 10)
	opts := &factory.Options{
		OnProblem: func(p informer.Problem) { problems <- p },
		Types: []factory.TypeOption{factory.ForType(factory.TypeOptions[metav1.Object]{
			Transform: func(o metav1.Object) (metav1.Object, error) { return &corev1.Node{}, nil },
		})},
	}
	withFactory(t, opts, func(w *fixture) {
		w.create(pod("a", "one"))
		pods(w, nil)
		w.start()
		w.sync()
		if len(problems) == 0 {
			t.Fatal("nothing was reported")
		}
		p := <-problems
		if p.Doing != "transform" || p.Key != "a/one" || p.Informer != "pods.v1" {
			t.Errorf("problem: %+v", p)
		}
		wantError(t, p.Err, "*v1.Node", "*v1.Pod")
	})
}

func TestP12_UndecodableObjectIsReported(t *testing.T) {
	for form, open := range map[string]func(*factory.Factory) error{
		"pods.v1":          func(f *factory.Factory) error { _, err := factory.Of[*corev1.Pod](f, nil); return err },
		"pods.v1(by name)": func(f *factory.Factory) error { _, err := f.ForResource(podsGVR, nil); return err },
	} {
		t.Run(form, func(t *testing.T) {
			problems := make(chan informer.Problem, 10)
			opts := &factory.Options{OnProblem: func(p informer.Problem) {
				if p.Doing == "decode" {
					problems <- p
				}
			}}
			withFactory(t, opts, func(w *fixture) {
				w.Inject(informertest.Fault{RefuseInitialEvents: true})
				w.Inject(informertest.Fault{Resource: "pods", Verbs: []string{"list"}, Undecodable: 1})
				w.create(pod("a", "one"), pod("a", "two"))
				if err := open(w.f); err != nil {
					t.Fatal(err)
				}
				w.start()
				w.sync()
				synctest.Wait() // problems of a list are reported when the list is in the store
				select {
				case p := <-problems:
					if p.Informer != form || p.Err == nil {
						t.Errorf("problem: %+v", p)
					}
				default:
					t.Error("nothing was reported")
				}
				if h := w.f.Health()[0]; h.Problems["decode"] != 1 || h.Objects != 1 {
					t.Errorf("%d objects and %v in the health; want 1 and one that could not be decoded", h.Objects, h.Problems)
				}
			})
		})
	}
}

func TestOnProblemMayCallHealth(t *testing.T) {
	var f *factory.Factory
	asked := make(chan int, 10)
	opts := &factory.Options{OnProblem: func(informer.Problem) { asked <- len(f.Health()) }}
	withFactory(t, opts, func(w *fixture) {
		f = w.f
		w.create(pod("a", "one"))
		h := pods(w, nil)
		w.start()
		w.sync()
		// The index fails while it is being added, inside AddIndex.
		if err := h.AddIndex("bad", func(*corev1.Pod) ([]string, error) { return nil, errors.New("no") }); err != nil {
			t.Fatal(err)
		}
		if len(asked) == 0 || <-asked != 1 {
			t.Error("OnProblem was not called, or Health returned nothing")
		}
	})
}

func TestConcurrentOpenReleaseStopAndStart(t *testing.T) {
	withFactory(t, nil, func(w *fixture) {
		w.create(pod("a", "one"))
		keep := pods(w, nil)
		ctx, cancel := context.WithCancel(w.Context())
		var users sync.WaitGroup
		for i := range 4 {
			users.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					h, err := factory.Of[*corev1.Pod](w.f,
						&factory.Scope{Namespaces: []string{[]string{"", "a", "b", "c"}[(i+n)%4]}})
					if err != nil {
						t.Error(err)
						return
					}
					if _, err := h.Subscribe(informer.Funcs[*corev1.Pod]{}, nil); err != nil {
						t.Error(err)
					}
					if err := h.AddIndex("app", byApp); err != nil {
						t.Error(err)
					}
					w.f.Health()
					time.Sleep(time.Duration(i+1) * time.Millisecond)
					h.Release()
				}
			})
		}
		for range 20 {
			w.start()
			time.Sleep(3 * time.Millisecond)
			w.stop()
		}
		cancel()
		users.Wait()
		w.start()
		w.sync()
		if _, err := keep.Lister().Get("a", "one"); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if hs := w.f.Health(); len(hs) != 1 || w.OpenWatches() != 1 {
			t.Errorf("%d informers and %d watches are left, want 1 of each", len(hs), w.OpenWatches())
		}
	})
}

// closer is a transport that counts the calls of CloseIdleConnections.
type closer struct {
	http.RoundTripper
	closed atomic.Int32
}

func (c *closer) CloseIdleConnections() { c.closed.Add(1) }

func TestStopClosesIdleConnectionsAgainLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, stop := informertest.Pipe(informertest.NewServer())
		defer stop()
		transport := &closer{RoundTripper: cfg.Transport}
		cfg.Transport = transport
		f, err := factory.New(cfg, &factory.Options{Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		closedAfterStop := func() int32 {
			t.Helper()
			if err := f.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			before := transport.closed.Load()
			if err := f.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			return transport.closed.Load() - before
		}
		if n := closedAfterStop(); n != 1 {
			t.Errorf("Stop closed idle connections %d times", n)
		}
		if n := closedAfterStop(); n != 1 { // the Start cancelled the later close of the first Stop
			t.Errorf("the second Stop closed idle connections %d times", n)
		}
		time.Sleep(time.Second)
		if n := transport.closed.Load(); n != 3 {
			t.Errorf("idle connections were closed %d times by two Stops and once later, want 3", n)
		}
	})
}

// An informer that is released while WaitForSync waits for another one does not count as stopped.
func TestWaitForSyncIgnoresInformersReleasedMeanwhile(t *testing.T) {
	withFactory(t, nil, func(w *fixture) {
		heal := w.Inject(informertest.Fault{Resource: "configmaps", Code: 500})
		open[any](w)(factory.Of[*corev1.ConfigMap](w.f, nil))
		h := pods(w, nil)
		w.start()
		waited := make(chan error)
		go func() { waited <- w.f.WaitForSync(context.Background()) }() // first for configmaps.v1, then for pods.v1
		synctest.Wait()
		h.Release()
		synctest.Wait()
		heal()
		if err := <-waited; err != nil {
			t.Error(err)
		}
	})
}
