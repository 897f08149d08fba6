package server_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server"
	"github.com/mirador-k8s/mirador/informertest"
)

// manyResources returns a daemon with clusters in memory that have many resources each: one pod, and resources without
// objects. If held is true, no list of the latter is answered and the start is not over; otherwise all
// resources are synced.
func manyResources(tb testing.TB, clusters, resources int, held bool) (*server.Server, *fleet.Fleet) {
	tb.Helper()
	fl, err := fleet.New(fleet.Options{Include: []string{"pods", "*.example.com"}, Logger: slog.New(slog.DiscardHandler),
		WithoutOpenAPI: true})
	if err != nil {
		tb.Fatal(err)
	}
	for i := range clusters {
		c := &faultyTransport{Server: informertest.NewServer(informertest.BookmarkEvery(time.Minute)),
			turned: make(chan struct{})}
		if held {
			c.hold(func(path string) bool { return strings.Contains(path, "/things") })
		}
		if _, err := c.Create(pod("web", "a", nil)); err != nil {
			tb.Fatal(err)
		}
		for k := 1; k < resources; k++ {
			gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: fmt.Sprintf("things%03d", k)}
			if err := c.Register(gvr, fmt.Sprintf("Thing%03d", k), true); err != nil {
				tb.Fatal(err)
			}
		}
		cfg, stop := informertest.Pipe(c.Server)
		tb.Cleanup(stop)
		cfg = rest.CopyConfig(cfg)
		cfg.Wrap(c.RoundTripper)
		if err := fl.Join(fmt.Sprintf("c%02d", i), cfg, fleet.Origin{Kind: fleet.FromFile}); err != nil {
			tb.Fatal(err)
		}
	}
	srv, err := server.New(fl, server.Options{StartGrace: time.Hour})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- fl.Run(ctx) }()
	go func() { ended <- srv.Run(ctx) }()
	tb.Cleanup(func() {
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				tb.Error(err)
			}
		}
	})
	want := clusters * resources
	if held {
		want = clusters
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(3 * time.Minute); ; <-tick.C {
		synced, known := 0, 0
		for _, c := range fl.Clusters() {
			for _, r := range c.Resources() {
				known++
				if r.Synced() {
					synced++
				}
			}
		}
		if known == clusters*resources && synced == want {
			return srv, fl
		}
		if time.Now().After(late) {
			tb.Fatalf("%d of %d resources are synced", synced, want)
		}
	}
}

// The cost of a request must not depend on resources that it does not name, whatever their state.
func TestCostOfARequestDoesNotDependOnOtherResources(t *testing.T) {
	few, _ := manyResources(t, 1, 3, true)
	many, _ := manyResources(t, 1, 53, true)
	for _, path := range []string{"/fleet/api/v1/pods", "/fleet/api/v1/pods?limit=1",
		"/fleet/api/v1/namespaces/c00.web/pods/a", "/fleet/version",
		"/fleet/apis/example.com/v1/things001", "/fleet/apis/example.com/v2/things001"} {
		ask := func(srv *server.Server) float64 {
			return testing.AllocsPerRun(100, func() {
				srv.ServeHTTP(&discarded{header: http.Header{}}, httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil))
			})
		}
		if a, b := ask(few), ask(many); b > a+10 {
			t.Errorf("%s: %v allocations in a cluster of 3 resources, %v in one of 53", path, a, b)
		}
	}
}

func TestCatalogIsMadeOnlyWhenResourcesChange(t *testing.T) {
	srv, fl := manyResources(t, 2, 2, false)
	ask := func(path string) {
		t.Helper()
		w := &discarded{header: http.Header{}}
		srv.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil))
		if w.code != http.StatusOK {
			t.Fatalf("%s: %d", path, w.code)
		}
	}
	ask("/fleet/version")
	ask("/fleet/api/v1/pods")
	if srv.FleetCatalog() != nil {
		t.Error("the catalog was made although no request needed it")
	}
	ask("/fleet/api")
	first := srv.FleetCatalog()
	ask("/fleet/apis/example.com/v1")
	if first == nil || srv.FleetCatalog() != first {
		t.Error("the catalog was made again although nothing had changed")
	}
	if err := fl.Leave(t.Context(), "c01"); err != nil {
		t.Fatal(err)
	}
	ask("/fleet/apis")
	if srv.FleetCatalog() == first {
		t.Error("the catalog still has a cluster that has left")
	}
}

// discarded is a response writer that drops the body.
type discarded struct {
	header http.Header
	code   int
}

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) Write(b []byte) (int, error) { return io.Discard.Write(b) }
func (d *discarded) WriteHeader(code int)        { d.code = code }

// BenchmarkFleetOf50 measures requests to a fleet of 50 clusters with 100 resources each.
func BenchmarkFleetOf50(b *testing.B) {
	paths := []struct{ name, path string }{
		{"get", "/fleet/api/v1/namespaces/c07.web/pods/a"},
		{"list", "/fleet/api/v1/pods"},
		{"count", "/fleet/api/v1/pods?limit=1"},
		{"another version", "/fleet/apis/example.com/v2/things002"},
		{"version", "/fleet/version"},
		{"discovery", "/fleet/apis/example.com/v1"},
	}
	for _, state := range []string{"synced", "starting"} {
		srv, _ := manyResources(b, 50, 100, state == "starting")
		for _, c := range paths {
			b.Run(state+"/"+c.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					srv.ServeHTTP(&discarded{header: http.Header{}},
						httptest.NewRequest(http.MethodGet, "http://localhost"+c.path, nil))
				}
			})
		}
	}
}
