package factory_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/factory"
	"github.com/mirador-k8s/mirador/informertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	podsGVR        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	deploymentsGVR = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	widgetsGVR     = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

	quiet = slog.New(slog.NewTextHandler(io.Discard, nil))
)

// fixture is an in-memory server and a factory that uses it, in fake time.
type fixture struct {
	*testing.T
	*informertest.Server
	f *factory.Factory
}

// withFactory runs a test in fake time. A goroutine that is left running fails the test.
func withFactory(t *testing.T, opts *factory.Options, test func(w *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := informertest.NewServer()
		cfg, stop := informertest.Pipe(s)
		defer stop()
		if opts == nil {
			opts = &factory.Options{}
		}
		opts.Logger = quiet
		f, err := factory.New(cfg, opts)
		if err != nil {
			t.Fatal(err)
		}
		w := &fixture{T: t, Server: s, f: f}
		defer w.stop()
		test(w)
	})
}

func (w *fixture) stop() {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := w.f.Stop(ctx); err != nil {
		w.Errorf("stop the factory: %v", err)
	}
}

func (w *fixture) start() {
	w.Helper()
	if err := w.f.Start(context.Background()); err != nil {
		w.Fatal(err)
	}
}

func (w *fixture) sync() {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	if err := w.f.WaitForSync(ctx); err != nil {
		w.Fatal(err)
	}
}

func (w *fixture) create(objs ...runtime.Object) {
	w.Helper()
	for _, o := range objs {
		if _, err := w.Create(o); err != nil {
			w.Fatal(err)
		}
	}
}

// watchRequests returns how many watches were opened for a resource.
func (w *fixture) watchRequests(gvr schema.GroupVersionResource) int {
	n := 0
	for _, r := range w.Requests() {
		if r.Resource == gvr && r.Verb == "watch" {
			n++
		}
	}
	return n
}

func pod(namespace, name string, labels ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}}}
	for _, l := range labels {
		k, v, _ := strings.Cut(l, "=")
		p.Labels[k] = v
	}
	return p
}

type unstructuredObject = unstructured.Unstructured

func nodeNamed(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func widget(namespace, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"namespace": namespace, "name": name},
	}}
}

// open opens a handle or fails the test.
func open[H any](t testing.TB) func(h H, err error) H {
	return func(h H, err error) H {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
}

func pods(w *fixture, scope *factory.Scope) *factory.Handle[*corev1.Pod] {
	w.Helper()
	return open[*factory.Handle[*corev1.Pod]](w)(factory.Of[*corev1.Pod](w.f, scope))
}

// names returns the sorted keys of the objects that a lister returned.
func names[T metav1.Object](t testing.TB) func(objs []T, err error) string {
	return func(objs []T, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		out := make([]string, len(objs))
		for i, o := range objs {
			out[i] = o.GetNamespace() + "/" + o.GetName()
		}
		slices.Sort(out)
		return fmt.Sprint(out)
	}
}

// wantError fails the test unless the error contains all parts.
func wantError(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want one that contains %q", parts)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("the error does not contain %q: %v", p, err)
		}
	}
}
