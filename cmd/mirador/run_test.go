package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/access"
	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/query"
	"github.com/mirador-k8s/mirador/daemon/server"
	"github.com/mirador-k8s/mirador/informertest"
)

// heldLists blocks lists before anything is read for them.
type heldLists struct {
	server.Authorizer
	arrived, free chan struct{}
	once          sync.Once
}

func (h *heldLists) Decide(_ context.Context, _ user.Info, _ string, a access.Attributes) (access.Decision, error) {
	h.hold(a.Verb, a.Resource)
	return access.Decision{Allowed: true}, nil
}

func (h *heldLists) Visible(_ context.Context, _ user.Info, _, verb string, of schema.GroupResource, _ bool) (
	*query.Visible, error) {
	h.hold(verb, of.Resource)
	return nil, nil
}

func (h *heldLists) Changed() <-chan struct{} { return nil }

func (h *heldLists) WaitRestored(context.Context, *fleet.Cluster) {}

func (h *heldLists) Mode(string) access.Mode { return access.ModeRBAC }

func (h *heldLists) hold(verb, resource string) {
	if verb == "list" && resource == "pods" {
		h.once.Do(func() { close(h.arrived) })
		<-h.free
	}
}

// inMemory returns a fleet of clusters in memory, each with a pod of its name.
func inMemory(t *testing.T, names ...string) *fleet.Fleet {
	t.Helper()
	fl, err := fleet.New(fleet.Options{Include: []string{"pods"}, Logger: slog.New(slog.DiscardHandler)})
	check(t, err)
	for _, name := range names {
		cluster := informertest.NewServer()
		pod := map[string]any{"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{"namespace": "web", "name": name}}
		_, err := cluster.Create(&unstructured.Unstructured{Object: pod})
		check(t, err)
		cfg, stop := informertest.Pipe(cluster)
		t.Cleanup(stop)
		check(t, fl.Join(name, cfg, fleet.Origin{Kind: fleet.FromFile}))
	}
	return fl
}

func TestShutdownFinishesListsBeforeTheClustersStop(t *testing.T) {
	fl := inMemory(t, "eu", "us")
	held := &heldLists{arrived: make(chan struct{}), free: make(chan struct{})}
	srv, err := server.New(fl, server.Options{Authorizer: held})
	check(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	at := "http://" + listener.Addr().String()
	ctx, terminate := context.WithCancel(t.Context())
	defer terminate()
	s := &service{fleet: fl, server: srv, files: &credentials{}, log: slog.New(slog.DiscardHandler)}
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx, listener) }()

	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	get := func(path string) *http.Response {
		resp, err := client.Get(at + path)
		check(t, err)
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	until(t, func() string {
		resp := get("/readyz")
		io.Copy(io.Discard, resp.Body) // only the status matters
		if resp.StatusCode != http.StatusOK {
			return "the daemon does not become ready"
		}
		return ""
	})
	watch := get("/fleet/api/v1/pods?watch=true")
	events := bufio.NewReader(watch.Body)
	for range 2 {
		_, err := events.ReadString('\n')
		check(t, err)
	}
	listed := make(chan *http.Response, 1)
	go func() { listed <- get("/fleet/api/v1/pods") }()
	<-held.arrived

	terminate()
	if rest, err := io.ReadAll(events); err != nil {
		t.Errorf("the watch does not end with a complete answer: %v after %q", err, rest)
	}
	until(t, func() string {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err == nil {
			conn.Close()
			return "a daemon that ends still accepts connections"
		}
		return ""
	})
	select {
	case err := <-ended:
		t.Fatalf("the daemon ended before the list was answered: %v", err)
	default:
	}
	for _, c := range fl.Clusters() {
		if h := c.Health(); h.State != fleet.Ready {
			t.Errorf("cluster %s is %s while a list of it is being answered", c.Name(), h.State)
		}
	}
	close(held.free)
	resp := <-listed
	var list struct {
		Items []metav1.PartialObjectMetadata
	}
	check(t, json.NewDecoder(resp.Body).Decode(&list))
	var names []string
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	if !slices.Equal(names, []string{"eu", "us"}) {
		t.Errorf("the last list has the pods %q, code %d", names, resp.StatusCode)
	}
	resp.Body.Close()
	check(t, <-ended)
}

func (d *daemon) hangup(t *testing.T) {
	t.Helper()
	check(t, d.cmd.Process.Signal(syscall.SIGHUP))
}

// reloads replaces the token and makes the daemon read it with SIGHUP.
func (d *daemon) reloads(t *testing.T, client *http.Client, write func(token string)) {
	t.Helper()
	const next = "another-token-that-nobody-should-see-9876543210"
	for _, step := range []struct{ now, before string }{{next, token}, {token, next}} {
		write(step.now)
		d.hangup(t)
		until(t, func() string {
			if code, _, _ := d.request(t, client, http.MethodGet, "/clusters", "Bearer "+step.now); code != http.StatusOK {
				return fmt.Sprintf("the new token is answered %d", code)
			}
			return ""
		})
		if code, _, _ := d.request(t, client, http.MethodGet, "/clusters",
			"Bearer "+step.before); code != http.StatusUnauthorized {
			t.Errorf("a request with the old token is answered %d", code)
		}
	}
}
