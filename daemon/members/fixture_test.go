package members_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/members"
	"github.com/mirador-k8s/mirador/informertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	podsGVR     = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	profilesGVR = schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: "v1alpha1",
		Resource: "clusterprofiles"}
)

const (
	namespace = "mirador"
	labelled  = "mirador.dev/member=true"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

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

// world is a home cluster whose members are followed in fake time. The fleet does not run, so no member is asked.
type world struct {
	*testing.T
	home *informertest.Server
	f    *fleet.Fleet
	logs *logs
}

func inWorld(t *testing.T, o members.Options, test func(w *world), objects ...runtime.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, home: informertest.NewServer(informertest.BookmarkEvery(time.Minute)), logs: &logs{}}
		check(t, w.home.Register(profilesGVR, "ClusterProfile", true))
		for _, obj := range objects {
			w.create(obj)
		}
		cfg, stop := informertest.Pipe(w.home)
		defer stop()
		var err error
		w.f, err = fleet.New(fleet.Options{Logger: w.logs.logger()})
		check(t, err)
		o.Config, o.Namespace, o.Logger = cfg, namespace, w.logs.logger()
		m, err := members.New(w.f, o)
		check(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		<-m.Known()
		test(w)
		cancel()
		check(t, <-ended)
	})
}

func (w *world) create(obj runtime.Object) {
	w.Helper()
	_, err := w.home.Create(obj)
	check(w.T, err)
}

func (w *world) update(obj runtime.Object) {
	w.Helper()
	_, err := w.home.Update(obj)
	check(w.T, err)
}

func (w *world) delete(obj runtime.Object) {
	w.Helper()
	_, err := w.home.Delete(obj)
	check(w.T, err)
}

// expect waits until what was written is known, and compares the members.
func (w *world) expect(when, want string) {
	w.Helper()
	<-time.After(time.Second)
	synctest.Wait()
	if got := names(w.f); got != want {
		w.Errorf("%s: the members are %q, want %q\n%s", when, got, want, w.logs)
	}
}

func (w *world) member(name string) *fleet.Cluster {
	w.Helper()
	c, ok := w.f.Cluster(name)
	if !ok {
		w.Fatalf("%s is not a member; there are: %s\n%s", name, names(w.f), w.logs)
	}
	return c
}

func names(f *fleet.Fleet) string {
	var out []string
	for _, c := range f.Clusters() {
		out = append(out, c.Name())
	}
	return strings.Join(out, " ")
}

func secret(name, key, content string, change ...func(*corev1.Secret)) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
		Labels: map[string]string{"mirador.dev/member": "true"}}, Data: map[string][]byte{key: []byte(content)}}
	for _, c := range change {
		c(s)
	}
	return s
}

// kubeconfig returns a kubeconfig of one context. The user is in YAML, such as {token: …}.
func kubeconfig(server, user string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: one\n"+
		"clusters:\n- name: c\n  cluster: {server: %q, insecure-skip-tls-verify: true}\n"+
		"users:\n- name: u\n  user: %s\ncontexts:\n- name: one\n  context: {cluster: c, user: u}\n", server, user)
}

// guarded is a cluster that accepts one token, and counts the requests for pods by token and verb.
type guarded struct {
	*informertest.Server
	mu     sync.Mutex
	denied string
	asked  map[string]int
}

// ServeHTTP counts and answers.
func (g *guarded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	q := r.URL.Query()
	verb := "list"
	if q.Get("watch") != "" && q.Get("sendInitialEvents") != "true" {
		verb = "watch"
	}
	g.mu.Lock()
	g.asked[token]++
	if strings.HasSuffix(r.URL.Path, "/pods") {
		g.asked[token+" "+verb]++
	}
	denied := token == "" || token == g.denied
	g.mu.Unlock()
	if denied {
		http.Error(w, "the token is not known", http.StatusUnauthorized)
		return
	}
	g.Server.ServeHTTP(w, r)
}

func (g *guarded) deny(token string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.denied = token
}

func (g *guarded) count(what string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked[what]
}

// newGuarded serves a cluster with TLS, because client-go sends tokens only over TLS.
func newGuarded(t *testing.T) (*guarded, string) {
	t.Helper()
	g := &guarded{Server: informertest.NewServer(), asked: map[string]int{}}
	_, err := g.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}})
	check(t, err)
	s := httptest.NewUnstartedServer(g)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(func() {
		g.CutWatches()
		s.CloseClientConnections()
		s.Close()
	})
	return g, s.URL
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(30 * time.Second); !holds(); <-tick.C {
		if time.Now().After(late) {
			t.Fatalf("timed out: %s", what)
		}
	}
}

// expectAny waits as expect does.
func (w *world) expectAny() {
	<-time.After(time.Second)
	synctest.Wait()
}

// running runs parts of the daemon until the function that it returns is called.
func running(t *testing.T, parts ...func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, run := range parts {
		wg.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	return func() {
		cancel()
		wg.Wait()
	}
}
