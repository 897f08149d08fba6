package fleet_test

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/informertest"
)

// guarded is a cluster that accepts only some tokens, and counts the requests for pods by token and verb.
type guarded struct {
	*informertest.Server
	mu     sync.Mutex
	denied map[string]bool
	asked  map[string]int // by "token", and for pods by "token verb"
}

// ServeHTTP counts and answers.
func (g *guarded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	verb := "list"
	if q := r.URL.Query(); q.Get("watch") != "" {
		verb = "watch"
		if q.Get("sendInitialEvents") == "true" {
			verb = "list" // by a watch
		}
	}
	g.mu.Lock()
	denied := g.denied[token]
	g.asked[token]++
	if strings.HasSuffix(r.URL.Path, "/pods") {
		g.asked[token+" "+verb]++
	}
	g.mu.Unlock()
	if denied {
		http.Error(w, "the token is not known", http.StatusUnauthorized)
		return
	}
	g.Server.ServeHTTP(w, r)
}

func (g *guarded) count(what string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked[what]
}

func (g *guarded) deny(tokens ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.denied = map[string]bool{}
	for _, t := range tokens {
		g.denied[t] = true
	}
}

func newGuarded(t *testing.T, first ...runtime.Object) (*guarded, *httptest.Server) {
	t.Helper()
	g := &guarded{Server: informertest.NewServer(), asked: map[string]int{}}
	create(t, g.Server, first...)
	create(t, g.Server, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}}, pod("web", "a"))
	s := httptest.NewUnstartedServer(g) // with TLS, because client-go sends tokens only over TLS
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(func() {
		g.CutWatches()
		s.CloseClientConnections()
		s.Close()
	})
	return g, s
}

func fileFor(server, token string, contexts ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b,
		"apiVersion: v1\nkind: Config\ncurrent-context: %s\nclusters:\n- name: c\n  cluster: {server: %q, "+
			"insecure-skip-tls-verify: true}\nusers:\n- name: u\n  user: {token: %s}\ncontexts:\n", contexts[0], server, token)
	for _, name := range contexts {
		fmt.Fprintf(&b, "- name: %s\n  context: {cluster: c, user: u}\n", name)
	}
	return b.String()
}

// running runs a fleet in real time.
func running(t *testing.T, l *logs, o ...fleet.Options) (f *fleet.Fleet, follow func(*fleet.Follower)) {
	t.Helper()
	opts := append(o, fleet.Options{})[0]
	opts.Include, opts.WithoutOpenAPI, opts.Logger = []string{"pods", "namespaces"}, true, l.logger()
	f, err := fleet.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	run := func(run func() error) {
		wg.Go(func() {
			if err := run(); err != nil {
				t.Error(err)
			}
		})
	}
	run(func() error { return f.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	return f, func(w *fleet.Follower) { run(func() error { return w.Run(ctx, time.Hour) }) }
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

func TestNewCredentialsOfTheSameClusterAreUsedInPlace(t *testing.T) {
	g, s := newGuarded(t)
	l := &logs{}
	f, follow := running(t, l)
	dir := t.TempDir()
	path := writeFile(t, filepath.Join(dir, "eu.yaml"), fileFor(s.URL, "token-of-old", "one"))
	w, err := f.FollowFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	follow(w)
	eu, _ := f.Cluster("eu")
	var pods *fleet.Resource
	eventually(t, "pods are mirrored", func() (ok bool) {
		pods, ok = eu.Resource(podsGVR)
		return ok && pods.Synced() && g.OpenWatches() == 2
	})
	lists := g.count("token-of-old list")
	still := func(when string) {
		t.Helper()
		if now, _ := f.Cluster("eu"); now != eu || eu.Health().State == fleet.Left {
			t.Fatalf("%s: the cluster has left", when)
		}
		select {
		case <-pods.Done():
			t.Fatalf("%s: the mirror of pods has ended", when)
		default:
		}
	}

	// A new token, and the old one is not accepted any more. The open watch continues.
	writeFile(t, path, fileFor(s.URL, "token-of-new", "one"))
	w.Check()
	eventually(t, "the new token is used", func() bool { return g.count("token-of-new") > 0 })
	g.deny("token-of-old")
	create(t, g.Server, pod("web", "b"))
	eventually(t, "b is mirrored", func() bool { return pods.Snapshot().Len() == 2 })
	g.CutWatches()
	eventually(t, "the watch goes on with the new token", func() bool { return g.count("token-of-new watch") > 0 })
	still("after another token")
	create(t, g.Server, pod("web", "c"))
	eventually(t, "c is mirrored", func() bool { return pods.Snapshot().Len() == 3 })
	if now, later := g.count("token-of-old list"), g.count("token-of-new list"); now != lists || later != 0 {
		t.Errorf("lists: %d with the old token, and were %d; %d with the new one", now, lists, later)
	}
	if text := l.String(); strings.Contains(text, "token-of-") {
		t.Errorf("a token is in the log: %s", text)
	}

	// The same server under another name is the same cluster, because its kube-system namespace is the same.
	writeFile(t, path, fileFor(strings.Replace(s.URL, "127.0.0.1", "localhost", 1), "token-of-next", "one"))
	w.Check()
	eventually(t, "the other address is used", func() bool { return g.count("token-of-next") > 1 })
	g.CutWatches()
	eventually(t, "the watch goes on by the other address", func() bool { return g.count("token-of-next watch") > 0 })
	still("after another address")

	// Another server is another cluster.
	other, s2 := newGuarded(t, pod("web", "z")) // with another kube-system namespace
	writeFile(t, path, fileFor(s2.URL, "token-of-other", "one"))
	w.Check()
	eventually(t, "the other cluster is asked", func() bool { return other.count("token-of-other list") > 0 })
	if now, _ := f.Cluster("eu"); now == eu {
		t.Error("another server's cluster is still the old one")
	}
	<-pods.Done()
}

func TestAClusterThatJoinsAgainUsesTheNewCredentials(t *testing.T) {
	g, s := newGuarded(t)
	state := filepath.Join(t.TempDir(), "state.json")
	f, _ := running(t, &logs{}, fleet.Options{StateFile: state})
	join := func(join func(string) error, address, token string) error {
		t.Helper()
		return join(fileFor(address, token, "one"))
	}
	first := func(kubeconfig string) error { return f.JoinKubeconfig("eu", []byte(kubeconfig), "") }
	again := func(kubeconfig string) error {
		return f.RejoinKubeconfig(t.Context(), "eu", []byte(kubeconfig), "")
	}
	if err := join(again, s.URL, "token-of-old"); !errors.Is(err, fleet.ErrUnknown) {
		t.Errorf("before it joined: %v", err)
	}
	if err := join(first, s.URL, "token-of-old"); err != nil {
		t.Fatal(err)
	}
	eu, _ := f.Cluster("eu")
	var pods *fleet.Resource
	eventually(t, "pods are mirrored", func() (ok bool) {
		pods, ok = eu.Resource(podsGVR)
		return ok && pods.Synced() && g.OpenWatches() == 2
	})
	lists := g.count("token-of-old list")
	if err := join(first, s.URL, "token-of-new"); !errors.Is(err, fleet.ErrExists) {
		t.Errorf("JoinKubeconfig of a member: %v", err)
	}
	if err := join(again, s.URL, "token-of-new"); err != nil {
		t.Fatal(err)
	}
	g.deny("token-of-old")
	create(t, g.Server, pod("web", "b"))
	eventually(t, "the open watch goes on", func() bool { return pods.Snapshot().Len() == 2 })
	g.CutWatches()
	eventually(t, "the next watch has the new token", func() bool { return g.count("token-of-new watch") > 0 })
	if now, later := g.count("token-of-old list"), g.count("token-of-new list"); now != lists || later != 0 {
		t.Errorf("lists: %d with the old token, and were %d; %d with the new one", now, lists, later)
	}

	_, other := newGuarded(t, pod("web", "z")) // with another kube-system namespace
	if err := join(again, other.URL, "token-of-other"); !errors.Is(err, fleet.ErrExists) {
		t.Errorf("with the kubeconfig of another cluster: %v", err)
	}
	// Nothing but the server's own word says that it is the same cluster at another address.
	elsewhere := strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	if err := join(again, elsewhere, "token-of-thief"); !errors.Is(err, fleet.ErrExists) ||
		!strings.Contains(err.Error(), "more than its credentials") || g.count("token-of-thief") > 0 {
		t.Errorf("at another address: %v, %d requests", err, g.count("token-of-thief"))
	}
	saved, err := os.ReadFile(state)
	if err != nil || !strings.Contains(string(saved), "token-of-new") || strings.Contains(string(saved), "token-of-o") {
		t.Errorf("the state file has %s, %v", saved, err)
	}
	if now, _ := f.Cluster("eu"); now != eu {
		t.Error("the cluster has left")
	}

	// The credentials of a cluster from a file are those in the file.
	configs, err := fleet.FromKubeconfig(writeFile(t, filepath.Join(t.TempDir(), "config"), fileFor(s.URL, "token", "us")))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Join("us", configs["us"], fleet.Origin{Kind: fleet.FromFile}); err != nil {
		t.Fatal(err)
	}
	err = f.RejoinKubeconfig(t.Context(), "us", []byte(fileFor(s.URL, "token-of-new", "us")), "")
	if !errors.Is(err, fleet.ErrExists) {
		t.Errorf("the cluster of a file joined again: %v", err)
	}
}

// None of them is even asked for its UID: the certificate authority is no secret, and it vouches for more than the API
// server.
func TestAKubeconfigThatDiffersInMoreThanCredentialsIsAnotherCluster(t *testing.T) {
	g, s := newGuarded(t)
	f, _ := running(t, &logs{})
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	verified := func(address, more string) []byte {
		return []byte(strings.Replace(fileFor(address, "token-of-thief", "one"), "insecure-skip-tls-verify: true",
			"certificate-authority-data: "+base64.StdEncoding.EncodeToString(authority)+more, 1))
	}
	if err := f.JoinKubeconfig("eu", []byte(strings.Replace(string(verified(s.URL, "")), "token-of-thief", "token-of-old",
		1)), ""); err != nil {
		t.Fatal(err)
	}
	eu, _ := f.Cluster("eu")
	eventually(t, "namespaces are mirrored", func() bool {
		all, ok := eu.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
		return ok && all.Synced()
	})
	for what, next := range map[string][]byte{
		"another name":        verified(strings.Replace(s.URL, "127.0.0.1", "localhost", 1), ""),
		"no TLS":              verified(strings.Replace(s.URL, "https", "http", 1), ""),
		"a path":              verified(s.URL+"/proxy", ""),
		"another certificate": verified(s.URL, ", tls-server-name: example.com"),
		"a proxy":             verified(s.URL, ", proxy-url: \"http://127.0.0.1:1\""),
		"no authority":        []byte(fileFor(s.URL, "token-of-thief", "one")),
	} {
		err := f.RejoinKubeconfig(t.Context(), "eu", next, "")
		if !errors.Is(err, fleet.ErrExists) || g.count("token-of-thief") > 0 {
			t.Errorf("%s: %v, %d requests", what, err, g.count("token-of-thief"))
		}
	}
}

// A cluster that refused its credentials is retried at once with new ones.
func TestNewCredentialsAreTriedAtOnce(t *testing.T) {
	g, s := newGuarded(t)
	g.deny("token-of-old")
	f, follow := running(t, &logs{})
	path := writeFile(t, filepath.Join(t.TempDir(), "config"), fileFor(s.URL, "token-of-old", "eu", "us"))
	w, err := f.FollowKubeconfig(path, "eu")
	if err != nil {
		t.Fatal(err)
	}
	follow(w)
	expect(t, f, "one context is followed", "eu")
	eu, _ := f.Cluster("eu")
	eventually(t, "it has failed some times", func() bool { _, err := eu.Discovered(); return err != nil })
	writeFile(t, path, fileFor(s.URL, "token-of-new", "eu", "us"))
	w.Check()
	eventually(t, "pods are mirrored", func() bool {
		pods, ok := eu.Resource(podsGVR)
		return ok && pods.Synced()
	})
	writeFile(t, path, fileFor(s.URL, "token-of-new", "us"))
	w.Check()
	if now, _ := f.Cluster("eu"); now != eu {
		t.Error("the cluster of a named context left when the context was removed from the file")
	}
}

func TestAllContextsOfAKubeconfigAreFollowed(t *testing.T) {
	_, s := newGuarded(t)
	l := &logs{}
	f, follow := running(t, l)
	path := writeFile(t, filepath.Join(t.TempDir(), "config"), fileFor(s.URL, "token", "eu"))
	if err := f.JoinKubeconfig("us", []byte(fileFor(s.URL, "token", "x")), ""); err != nil {
		t.Fatal(err)
	}
	us, _ := f.Cluster("us")
	w, err := f.FollowKubeconfig(path)
	if err != nil {
		t.Fatal(err)
	}
	follow(w)
	writeFile(t, path, fileFor(s.URL, "token", "asia", "eu", "us"))
	w.Check()
	eventually(t, "a context that was added has joined", func() bool { return names(f.Clusters()) == "asia eu us" })
	if now, _ := f.Cluster("us"); now != us {
		t.Error("the kubeconfig replaced a cluster that had joined by other means")
	}
	writeFile(t, path, fileFor(s.URL, "token", "asia"))
	w.Check()
	eventually(t, "a context that was removed has left", func() bool { return names(f.Clusters()) == "asia us" })
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	w.Check()
	eventually(t, "it is reported", func() bool { return strings.Contains(l.String(), "its clusters stay as they are") })
	expect(t, f, "without the file", "asia us")
}

// A file that has not changed is not read, because a folder may have hundreds and is checked every few seconds.
func TestUnchangedFileIsNotRead(t *testing.T) {
	f := newFleet(t, fleet.Options{})
	dir := t.TempDir()
	path := writeFile(t, filepath.Join(dir, "eu.yaml"), fileFor("https://127.0.0.1:1", "token-a", "one"))
	past := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, past, past); err != nil {
		t.Fatal(err)
	}
	w, err := f.FollowFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	first, _ := f.Cluster("eu")
	look := func() {
		t.Helper()
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		writeFile(t, filepath.Join(dir, "last.yaml"), fileFor("https://127.0.0.1:1", "token-a", "one"))
		go func() { ended <- w.Run(ctx, time.Hour) }()
		w.Check()
		eventually(t, "the folder was checked", func() bool { _, ok := f.Cluster("last"); return ok })
		if err := os.Remove(filepath.Join(dir, "last.yaml")); err != nil {
			t.Fatal(err)
		}
		w.Check()
		eventually(t, "the folder was checked again", func() bool { _, ok := f.Cluster("last"); return !ok })
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	// The same size and time, which no editor produces.
	writeFile(t, path, fileFor("https://127.0.0.1:2", "token-a", "one"))
	if err := os.Chtimes(path, past, past); err != nil {
		t.Fatal(err)
	}
	look()
	if now, _ := f.Cluster("eu"); now != first {
		t.Error("the file was read although its stamp is unchanged")
	}
	now := past.Add(time.Second)
	if err := os.Chtimes(path, now, now); err != nil {
		t.Fatal(err)
	}
	look()
	if now, _ := f.Cluster("eu"); now == first {
		t.Error("the file was not read although its time has changed")
	}
}
