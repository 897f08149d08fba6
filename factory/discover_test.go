package factory_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/factory"
	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/informertest"
)

func TestAllMirrorsEverythingThatDiscoveryLists(t *testing.T) {
	withFactory(t, &factory.Options{Scope: factory.Scope{Namespaces: []string{"a"}}}, func(w *fixture) {
		register(t, w.Server, widgetsGVR, "Widget")
		w.create(pod("a", "one"), pod("b", "elsewhere"), widget("a", "gear"), nodeNamed("n1"))
		set, err := factory.All(w.Context(), w.f, w.f.Metadata, func(r factory.Resource) bool { return r.Kind != "Secret" })
		if err != nil {
			t.Fatal(err)
		}
		w.start()
		w.sync()
		found := map[schema.GroupVersionResource]string{}
		for _, h := range set.Handles() {
			found[h.Resource()] = names[*metav1.PartialObjectMetadata](t)(h.Lister().List(nil))
		}
		for gvr, want := range map[schema.GroupVersionResource]string{
			podsGVR: "[a/one]", widgetsGVR: "[a/gear]", {Version: "v1", Resource: "nodes"}: "[/n1]", deploymentsGVR: "[]",
		} {
			if got, ok := found[gvr]; !ok || got != want {
				t.Errorf("%s: mirrored %v, %s; want %s", gvr.Resource, ok, got, want)
			}
		}
		if _, ok := found[schema.GroupVersionResource{Version: "v1", Resource: "secrets"}]; ok {
			t.Error("a resource that the filter rejects is mirrored")
		}
		set.Release()
		synctest.Wait()
		if n := len(w.f.Health()); n != 0 {
			t.Errorf("%d informers are left after the release of the set", n)
		}
	})
}

func TestRefreshOpensNewAndReleasesRemovedResources(t *testing.T) {
	withFactory(t, nil, func(w *fixture) {
		set, err := factory.All(w.Context(), w.f, w.f.Raw, func(r factory.Resource) bool { return r.Group == "example.com" })
		if err != nil {
			t.Fatal(err)
		}
		w.start()
		refresh := func(added, removed []schema.GroupVersionResource) {
			t.Helper()
			c, err := w.f.Refresh(w.Context())
			if err != nil || !slices.Equal(c.Added, added) || !slices.Equal(c.Removed, removed) || len(c.Failed) > 0 {
				t.Fatalf("Refresh = %+v, %v; want %v added and %v removed", c, err, added, removed)
			}
		}
		only := []schema.GroupVersionResource{widgetsGVR}
		refresh(nil, nil)
		for range 2 {
			register(t, w.Server, widgetsGVR, "Widget")
			w.create(widget("a", "gear"))
			refresh(only, nil)
			refresh(nil, nil)
			w.sync()
			if objs, err := set.Handles()[0].Lister().List(nil); err != nil || len(objs) != 1 {
				t.Fatalf("List = %d widgets, %v", len(objs), err)
			}
			if err := w.Unregister(widgetsGVR); err != nil {
				t.Fatal(err)
			}
			refresh(nil, only)
			if n := len(set.Handles()); n != 0 {
				t.Fatalf("%d handles are left", n)
			}
		}
		set.Release()
		register(t, w.Server, widgetsGVR, "Widget")
		refresh(nil, nil)
	})
}

// Without a Refresh, the informer waits until its resource is served again.
func TestHandleResumesWhenItsResourceIsServedAgain(t *testing.T) {
	withFactory(t, nil, func(w *fixture) {
		register(t, w.Server, widgetsGVR, "Widget")
		w.create(widget("a", "gear"))
		h, err := w.f.Dynamic(widgetsGVR, nil)
		if err != nil {
			t.Fatal(err)
		}
		gone, back := make(chan struct{}), make(chan struct{})
		open[any](w)(h.Subscribe(informer.Funcs[*unstructuredObject]{
			OnAdd: func(u *unstructuredObject, _ bool) {
				if u.GetName() == "wheel" {
					close(back)
				}
			},
			OnDelete: func(*unstructuredObject, bool) { close(gone) },
		}, nil))
		w.start()
		w.sync()
		if err := w.Unregister(widgetsGVR); err != nil {
			t.Fatal(err)
		}
		<-gone
		register(t, w.Server, widgetsGVR, "Widget")
		w.create(widget("a", "wheel"))
		<-back
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestP12_GroupWhoseDiscoveryFailsIsReportedAndKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := informertest.NewServer()
		register(t, s, widgetsGVR, "Widget")
		cfg, stop := informertest.Pipe(s)
		defer stop()
		var down atomic.Bool
		cfg = rest.CopyConfig(cfg)
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTrip(func(r *http.Request) (*http.Response, error) {
				if strings.Contains(r.Header.Get("Accept"), "APIGroupDiscoveryList") {
					r = r.Clone(r.Context())
					r.Header.Set("Accept", "application/json") // a server without aggregated discovery
				}
				if down.Load() && r.URL.Path == "/apis/example.com/v1" {
					return &http.Response{StatusCode: 503, Header: http.Header{},
						Body: io.NopCloser(strings.NewReader("down")), Request: r}, nil
				}
				return next.RoundTrip(r)
			})
		})
		problems := make(chan informer.Problem, 10)
		f, err := factory.New(cfg, &factory.Options{Logger: quiet,
			OnProblem: func(p informer.Problem) { problems <- p }})
		if err != nil {
			t.Fatal(err)
		}
		down.Store(true)
		set, err := factory.All(t.Context(), f, f.Dynamic, nil)
		if err != nil {
			t.Fatalf("All fails because one group is down: %v", err)
		}
		if p := <-problems; p.Doing != "discover" || !strings.Contains(p.Err.Error(), "example.com/v1") {
			t.Errorf("problem: %+v", p)
		}
		has := func() bool {
			return slices.ContainsFunc(set.Handles(),
				func(h *factory.Handle[*unstructuredObject]) bool { return h.Resource() == widgetsGVR })
		}
		if has() || len(set.Handles()) < 10 {
			t.Fatalf("%d handles, widgets among them: %v", len(set.Handles()), has())
		}
		down.Store(false)
		if c, err := f.Refresh(t.Context()); err != nil || len(c.Added) != 1 || !has() {
			t.Fatalf("Refresh after the group is back = %+v, %v", c, err)
		}
		down.Store(true)
		c, err := f.Refresh(t.Context())
		if err != nil || len(c.Removed) != 0 || !has() {
			t.Errorf("a group whose discovery failed was removed: %+v, %v", c, err)
		}
		if len(c.Failed) != 1 || c.Failed[widgetsGVR.GroupVersion()] == nil {
			t.Errorf("Failed = %v", c.Failed)
		}
		set.Release()
		if err := f.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestDiscoveryErrorSaysWhatToCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, stop := informertest.Pipe(informertest.NewServer())
		f, err := factory.New(cfg, &factory.Options{Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		stop()
		_, err = factory.All(t.Context(), f, f.Raw, nil)
		wantError(t, err, "mirror everything", cfg.Host, "check that the API server runs")
		_, err = f.Refresh(t.Context())
		wantError(t, err, "refresh", "refused")
	})
}
