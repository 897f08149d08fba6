package fleet_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/informertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	podsGVR    = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	secretsGVR = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	widgetsGVR = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	crdsGVR    = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}
)

// logs collects log records.
type logs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logs) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// world is a running fleet inside a bubble of fake time.
type world struct {
	*testing.T
	f    *fleet.Fleet
	logs *logs
	stop func()
	ends []func()
}

// inWorld runs a test with fake time. A goroutine that the fleet leaves running fails the test,
// because the bubble does not end before it.
func inWorld(t *testing.T, o fleet.Options, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, logs: &logs{}}
		o.Logger = w.logs.logger()
		var err error
		if w.f, err = fleet.New(o); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- w.f.Run(ctx) }()
		synctest.Wait()
		w.stop = sync.OnceFunc(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("Run: %v", err)
			}
		})
		defer func() {
			w.stop()
			for _, end := range w.ends {
				end()
			}
		}()
		test(w)
	})
}

// server returns a server on pipes and its config.
func (w *world) server() (*informertest.Server, *rest.Config) {
	s := informertest.NewServer(informertest.BookmarkEvery(time.Minute))
	cfg, stop := informertest.Pipe(s)
	w.ends = append(w.ends, stop)
	return s, cfg
}

// joined makes a server and joins it.
func (w *world) joined(name string) (*informertest.Server, *fleet.Cluster) {
	w.Helper()
	s, cfg := w.server()
	return s, w.join(name, cfg)
}

func (w *world) join(name string, cfg *rest.Config) *fleet.Cluster {
	w.Helper()
	if err := w.f.Join(name, cfg, fleet.Origin{Kind: fleet.FromFile, Detail: "test"}); err != nil {
		w.Fatal(err)
	}
	c, ok := w.f.Cluster(name)
	if !ok {
		w.Fatalf("%s has joined and is not a member", name)
	}
	return c
}

// until waits in fake time for a condition.
func (w *world) until(what string, holds func() bool) {
	w.Helper()
	for range 3000 {
		if synctest.Wait(); holds() {
			return
		}
		<-time.After(100 * time.Millisecond)
	}
	w.Fatalf("not after five minutes: %s\n%s", what, w.logs)
}

func (w *world) untilState(c *fleet.Cluster, want fleet.State) fleet.ClusterHealth {
	w.Helper()
	w.until(c.Name()+" is "+string(want), func() bool { return c.Health().State == want })
	return c.Health()
}

func (w *world) resource(c *fleet.Cluster, gvr schema.GroupVersionResource) *fleet.Resource {
	w.Helper()
	w.until(c.Name()+" has "+gvr.Resource, func() bool { r, ok := c.Resource(gvr); return ok && r.Synced() })
	r, _ := c.Resource(gvr)
	return r
}

func create(t testing.TB, s *informertest.Server, objs ...runtime.Object) {
	t.Helper()
	for _, o := range objs {
		if _, err := s.Create(o); err != nil {
			t.Fatal(err)
		}
	}
}

func register(t testing.TB, s *informertest.Server, gvr schema.GroupVersionResource, kind string, namespaced bool) {
	t.Helper()
	if err := s.Register(gvr, kind, namespaced); err != nil {
		t.Fatal(err)
	}
}

func pod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func custom(gvr schema.GroupVersionResource, kind, namespace, name string) *unstructured.Unstructured {
	meta := map[string]any{"name": name}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": gvr.GroupVersion().String(), "kind": kind, "metadata": meta,
	}}
}

// roundTrip is an http.RoundTripper made of a function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// wrapped returns a config whose requests a function may answer. If it returns nil, the server
// answers.
func wrapped(cfg *rest.Config, answer func(*http.Request) *http.Response) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if resp := answer(r); resp != nil {
				resp.Request = r
				return resp, nil
			}
			return next.RoundTrip(r)
		})
	})
	return cfg
}

func reply(code int, contentType string, body io.Reader) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(body)}
}

func replyJSON(body string) *http.Response {
	return reply(http.StatusOK, "application/json", strings.NewReader(body))
}

// endless is a body that never ends.
type endless string

func (e endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = e[i%len(e)]
	}
	return len(b), nil
}

// says fails the test unless the text of an error contains all parts.
func says(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want one with %q", parts)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("the error does not contain %q: %v", p, err)
		}
	}
}

func names(clusters []*fleet.Cluster) string {
	var out []string
	for _, c := range clusters {
		out = append(out, c.Name())
	}
	return strings.Join(out, " ")
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// edited returns a config whose answers a function may change.
func edited(cfg *rest.Config, edit func(r *http.Request, body string) string) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err != nil || !strings.HasPrefix(r.URL.Path, "/api") || strings.Count(r.URL.Path, "/") > 1 {
				return resp, err
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			resp.Body = io.NopCloser(strings.NewReader(edit(r, string(body))))
			return resp, err
		})
	})
	return cfg
}
