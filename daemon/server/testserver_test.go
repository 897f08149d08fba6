package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/daemon/access"
	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/informertest"
)

// InMemory is a server over clusters in memory, for the tests inside and outside this package.
type InMemory struct {
	*Server
	URL    string
	Client *http.Client
	Start  func() // runs the fleet and the server until the test ends
	Close  func() // ends all watches and waits until no request is in progress
}

// NewInMemory serves the clusters. The test calls Start.
func NewInMemory(t testing.TB, clusters map[string]http.Handler, mirrors fleet.Options, o Options) *InMemory {
	t.Helper()
	return NewInMemoryWithRights(t, clusters, mirrors, o, nil)
}

// NewInMemoryWithRights is NewInMemory with the rights of users in the clusters. authenticator may be nil.
func NewInMemoryWithRights(t testing.TB, clusters map[string]http.Handler, mirrors fleet.Options, o Options,
	authenticator Authenticator) *InMemory {
	t.Helper()
	if mirrors.Logger == nil {
		mirrors.Logger = slog.New(slog.DiscardHandler)
	}
	fl, err := fleet.New(mirrors)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range clusters {
		api := httptest.NewServer(c)
		t.Cleanup(api.Close)
		if err := fl.Join(name, &rest.Config{Host: api.URL}, fleet.Origin{Kind: "kubeconfig"}); err != nil {
			t.Fatal(err)
		}
	}
	run := []func(context.Context) error{fl.Run}
	if o.Access.Authenticator = authenticator; authenticator != nil {
		rights, err := access.New(fl, access.Options{})
		if err != nil {
			t.Fatal(err)
		}
		o.Authorizer = rights
		run = append(run, rights.Run)
	}
	srv, err := New(fl, o)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewUnstartedServer(srv)
	web.Config.ConnContext = withSmallBuffer
	web.Start()
	ctx, cancel := context.WithCancel(t.Context())
	run = append(run, srv.Run)
	ended := make(chan error, len(run))
	running := 0
	t.Cleanup(func() {
		srv.Stop()
		web.Close()
		cancel()
		for range running {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
	return &InMemory{Server: srv, URL: web.URL, Client: web.Client(), Close: func() {
		srv.Stop()
		web.Close()
	}, Start: func() {
		for _, run := range run {
			running++
			go func() { ended <- run(ctx) }()
		}
	}}
}

// withSmallBuffer makes send buffers small, so that answers have to wait for slow clients.
func withSmallBuffer(ctx context.Context, c net.Conn) context.Context {
	c.(*net.TCPConn).SetWriteBuffer(4 << 10) // if it fails, the buffer is larger
	return ctx
}

// testServer is a server with one cluster, eu, that has pods, for tests of this package.
type testServer struct {
	*InMemory
	res *fleet.Resource
}

func newTestServer(t testing.TB) *testServer {
	t.Helper()
	cluster := informertest.NewServer()
	for _, name := range []string{"a", "b"} {
		pod := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{"namespace": "web", "name": name}}}
		if _, err := cluster.Create(pod); err != nil {
			t.Fatal(err)
		}
	}
	s := NewInMemory(t, map[string]http.Handler{"eu": cluster},
		fleet.Options{Include: []string{"pods"}, WithoutOpenAPI: true}, Options{})
	s.Start()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(30 * time.Second); time.Now().Before(late); <-tick.C {
		c, _ := s.fleet.Cluster("eu")
		if all := c.Resources(); len(all) == 1 && all[0].Synced() {
			return &testServer{s, all[0]}
		}
	}
	t.Fatal("the pods were not mirrored")
	return nil
}
