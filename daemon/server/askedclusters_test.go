package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/access"
	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/query"
	"github.com/mirador-k8s/mirador/informertest"
)

// meeting is an Authorizer whose clusters have to be asked. While it is closed, no cluster answers before all of them
// were asked, and the cluster that hangs answers with an error only then.
type meeting struct {
	allowAll
	clusters int
	hangs    string

	mu     sync.Mutex
	asked  map[string]bool
	all    chan struct{} // closed when all were asked
	closed bool
}

func (*meeting) Mode(string) access.Mode { return access.ModeReview }

func (m *meeting) ask(cluster string) error {
	m.mu.Lock()
	if !m.closed {
		m.mu.Unlock()
		return nil
	}
	if m.asked[cluster] = true; len(m.asked) == m.clusters {
		select {
		case <-m.all:
		default:
			close(m.all)
		}
	}
	all := m.all
	m.mu.Unlock()
	select {
	case <-all:
	case <-time.After(20 * time.Second):
		return fmt.Errorf("cluster %s waits for the others", cluster)
	}
	if cluster == m.hangs {
		return errors.New("it does not answer")
	}
	return nil
}

func (m *meeting) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed, m.asked, m.all = true, map[string]bool{}, make(chan struct{})
}

func (m *meeting) Visible(_ context.Context, _ user.Info, cluster, _ string, _ schema.GroupResource,
	_ bool) (*query.Visible, error) {
	return nil, m.ask(cluster)
}

func (m *meeting) Decide(_ context.Context, _ user.Info, cluster string, _ access.Attributes) (access.Decision, error) {
	if cluster == access.Daemon {
		return access.Decision{}, nil
	}
	return access.Decision{Allowed: true}, m.ask(cluster)
}

func TestClustersAreAskedForRightsAtTheSameTime(t *testing.T) {
	m := &meeting{hangs: "c3"}
	clusters := map[string]http.Handler{}
	for i := range 6 {
		c := informertest.NewServer()
		if _, err := c.Create(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{"namespace": "web", "name": fmt.Sprint("pod-of-c", i)}}}); err != nil {
			t.Fatal(err)
		}
		clusters[fmt.Sprint("c", i)] = c
	}
	m.clusters = len(clusters)
	s := NewInMemory(t, clusters, fleet.Options{Include: []string{"pods"}, WithoutOpenAPI: true},
		Options{Authorizer: m, StartGrace: -1})
	s.Start()
	get := func(path string) (int, string, string) {
		t.Helper()
		resp, err := s.Client.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b), strings.Join(resp.Header.Values("Warning"), "\n")
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(30 * time.Second); time.Now().Before(late); <-tick.C {
		if code, _, _ := get("/fleet/api/v1/pods?complete=true"); code == http.StatusOK {
			break
		}
	}
	for _, path := range []string{"/fleet/api/v1/pods", "/fleet/api/v1", "/fleet/version"} {
		m.close()
		code, text, warnings := get(path)
		if code != http.StatusOK || !strings.Contains(warnings, "is left out") || strings.Contains(text, "pod-of-c3") ||
			path == "/fleet/api/v1/pods" && strings.Count(text, "pod-of-c") != 5 {
			t.Errorf("%s: %d %s, warnings %q", path, code, text, warnings)
		}
		if strings.Contains(warnings, "c3") {
			t.Errorf("%s: a warning names a cluster whose rights are not known: %s", path, warnings)
		}
	}
}

func TestAFilteredWatchOfAClusterDoesNotContinueAListWithOtherRights(t *testing.T) {
	t.Parallel()
	a := &changingSet{set: &query.Visible{Namespaces: []string{"web"}}}
	cluster := informertest.NewServer()
	for _, ns := range []string{"web", "shop"} {
		if _, err := cluster.Create(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{"namespace": ns, "name": "a"}}}); err != nil {
			t.Fatal(err)
		}
	}
	s := NewInMemory(t, map[string]http.Handler{"eu": cluster}, fleet.Options{Include: []string{"pods"},
		WithoutOpenAPI: true}, Options{Authorizer: a, StartGrace: -1})
	s.Start()
	get := func(query string) (int, string) {
		t.Helper()
		resp, err := s.Client.Get(s.URL + "/clusters/eu/api/v1/pods?filtered=true" + query)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	list := func() string {
		t.Helper()
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for late := time.Now().Add(30 * time.Second); time.Now().Before(late); <-tick.C {
			if code, text := get(""); code == http.StatusOK {
				_, rest, _ := strings.Cut(text, `"resourceVersion":"`)
				version, _, _ := strings.Cut(rest, `"`)
				return "&watch=true&timeoutSeconds=1&resourceVersion=" + version
			}
		}
		t.Fatal("the pods were not mirrored")
		return ""
	}
	watch := list()
	for _, set := range []*query.Visible{{Namespaces: []string{"shop", "web"}}, nil, {Namespaces: []string{"web"}}} {
		a.change(set)
		if _, text := get(watch); !strings.Contains(text, `"code":410`) {
			t.Errorf("a watch with other rights than the list: %q", text)
		}
		watch = list()
	}
	if _, text := get(watch); text != "" {
		t.Errorf("a watch after a new list: %s", text)
	}
}

// changingSet is an Authorizer with one set for everything. nil allows every request.
type changingSet struct {
	allowAll
	mu  sync.Mutex
	set *query.Visible
}

func (a *changingSet) change(set *query.Visible) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.set = set
}

func (a *changingSet) Visible(context.Context, user.Info, string, string, schema.GroupResource,
	bool) (*query.Visible, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.set, nil
}

func (a *changingSet) Decide(context.Context, user.Info, string, access.Attributes) (access.Decision, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return access.Decision{Allowed: a.set == nil}, nil
}

func TestARulesReviewOfTheFleetWaitsForItsTurn(t *testing.T) {
	s := newTestServer(t)
	const path, body = "/fleet/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
		`{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectRulesReview","spec":{"namespace":"default"}}`
	var held []*work
	for i := range s.work.slots {
		w, err := s.work.begin(t.Context(), clientKey(fmt.Sprint("client ", i)))
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, w)
	}
	done := make(chan int)
	go func() {
		resp, err := s.Client.Post(s.URL+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			close(done)
			return
		}
		resp.Body.Close()
		done <- resp.StatusCode
	}()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	waits := func() bool {
		s.work.mu.Lock()
		defer s.work.mu.Unlock()
		return s.work.busy > s.work.slots
	}
	for !waits() {
		select {
		case code := <-done:
			t.Fatalf("the review was answered with %d without a turn", code)
		case <-tick.C:
		}
	}
	for _, w := range slices.Backward(held) {
		w.end()
	}
	if code := <-done; code != http.StatusCreated {
		t.Errorf("then the review is %d", code)
	}
}
