package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/access"
	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/query"
	"github.com/mirador-k8s/mirador/informertest"
)

// setAuthorizer shows a set of each cluster to every user. It allows requests for objects, and no others.
type setAuthorizer struct {
	allowAll

	mu      sync.Mutex
	sets    map[string]*query.Visible // none: not known
	changed chan struct{}
}

func (a *setAuthorizer) Changed() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changed
}

func (a *setAuthorizer) set(cluster string, v *query.Visible) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sets[cluster] = v
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *setAuthorizer) Visible(_ context.Context, _ user.Info, cluster, _ string, _ schema.GroupResource,
	_ bool) (*query.Visible, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if v := a.sets[cluster]; v != nil {
		return v, nil
	}
	return nil, errors.New("the rights are not known")
}

func (a *setAuthorizer) Decide(_ context.Context, _ user.Info, _ string,
	want access.Attributes) (access.Decision, error) {
	return access.Decision{Allowed: want.ResourceRequest}, nil
}

// newSetServer has the clusters eu and us, each with the pods web/a and shop/a. The rights in us are not known, and
// namespace web of eu is visible.
func newSetServer(t *testing.T) (*InMemory, *setAuthorizer) {
	t.Helper()
	a := &setAuthorizer{sets: map[string]*query.Visible{"eu": {Namespaces: []string{"web"}}, "us": {All: true}},
		changed: make(chan struct{})}
	clusters := map[string]http.Handler{}
	for _, name := range []string{"eu", "us"} {
		c := informertest.NewServer()
		for _, ns := range []string{"web", "shop"} {
			if _, err := c.Create(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod",
				"metadata": map[string]any{"namespace": ns, "name": "a"}}}); err != nil {
				t.Fatal(err)
			}
		}
		clusters[name] = c
	}
	s := NewInMemory(t, clusters, fleet.Options{Include: []string{"pods"}, WithoutOpenAPI: true},
		Options{Authorizer: a, StartGrace: -1})
	s.Start()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(30 * time.Second); ; <-tick.C {
		if _, n := s.listed(t); n == 3 {
			break
		}
		if time.Now().After(late) {
			t.Fatal("the pods were not mirrored")
		}
	}
	a.set("us", nil)
	return s, a
}

// listed returns the version of a list at /fleet, and how many pods it has.
func (s *InMemory) listed(t *testing.T) (version string, pods int) {
	t.Helper()
	resp, err := s.Client.Get(s.URL + "/fleet/api/v1/pods")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var list struct {
		Metadata struct{ ResourceVersion string }
		Items    []any
	}
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	return list.Metadata.ResourceVersion, len(list.Items)
}

// watch opens a watch at /fleet.
func (s *InMemory) watch(t *testing.T, version string) *bufio.Scanner {
	t.Helper()
	resp, err := s.Client.Get(s.URL + "/fleet/api/v1/pods?watch=true&timeoutSeconds=30&resourceVersion=" + version)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return bufio.NewScanner(resp.Body)
}

func wantExpired(t *testing.T, lines *bufio.Scanner) {
	t.Helper()
	if !lines.Scan() || !strings.Contains(lines.Text(), `"code":410`) {
		t.Errorf("the watch sends %q and does not end with 410", lines.Text())
	}
}

func TestARightGrantedBetweenListAndWatchEndsTheWatch(t *testing.T) {
	s, a := newSetServer(t)
	version, _ := s.listed(t)
	a.set("eu", &query.Visible{All: true})
	wantExpired(t, s.watch(t, version))
	version, pods := s.listed(t)
	if pods != 2 {
		t.Errorf("then a list has %d pods", pods)
	}
	lines := s.watch(t, version) // is not ended
	a.set("eu", &query.Visible{Namespaces: []string{"web"}})
	wantExpired(t, lines)
}

func TestRightsThatBecomeKnownEndTheWatch(t *testing.T) {
	s, a := newSetServer(t)
	version, pods := s.listed(t)
	if pods != 1 {
		t.Fatalf("a list has %d pods", pods)
	}
	lines := s.watch(t, version)
	a.set("us", &query.Visible{All: true})
	wantExpired(t, lines)
	if _, pods := s.listed(t); pods != 3 {
		t.Errorf("then a list has %d pods", pods)
	}
}

func TestReviewsKnowTheRightsToPaths(t *testing.T) {
	s, _ := newSetServer(t)
	body := `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1",` +
		`"spec":{"nonResourceAttributes":{"path":"/version","verb":"get"}}}`
	resp, err := s.Client.Post(s.URL+"/clusters/eu/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
		"application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var review struct{ Status struct{ Allowed bool } }
	if err := json.NewDecoder(resp.Body).Decode(&review); err != nil || review.Status.Allowed {
		t.Errorf("a path that is refused is allowed by a review: %v", err)
	}
}

func TestAUserThatIsShownManySetsCausesNoWatchOfOthersToEnd(t *testing.T) {
	var ss shownSets
	hub := newFleetWatchHub(new(atomic.Uint64))
	web := &query.Visible{Namespaces: []string{"web"}}
	key := func(i int, cluster string) shownKey {
		return shownKey{of: schema.GroupVersionResource{Version: "v1", Resource: fmt.Sprint(i)}, cluster: cluster}
	}
	const resources = 20
	since := make([]uint64, resources)
	for i := range since {
		_, since[i] = ss.note("alice", key(i, ""), uint64(i), []fleet.ShownIn{showIn("eu", web), showIn("us", nil)}, hub, 0)
		ss.noteIn("alice", key(i, "eu"), web, false)
	}
	for i := range 2 * maxShownToClient {
		ss.note("mallory", key(i, ""), uint64(resources+i), []fleet.ShownIn{showIn("eu", web)}, hub, 0)
		ss.noteIn("mallory", key(i, "eu"), web, false)
	}
	for client, of := range ss.clients {
		if of.size > maxShownToClient {
			t.Errorf("the size of what %s was shown is %d, want at most %d", client, of.size, maxShownToClient)
		}
	}
	// Many clients take no more than all may take, and those that were shown little are not forgotten.
	for i := range 400 {
		for j := range 300 {
			ss.noteIn(clientKey(fmt.Sprint("client-", i)), key(j, "eu"), web, false)
		}
	}
	if ss.size > maxShown {
		t.Errorf("the size of everything is %d, want at most %d", ss.size, maxShown)
	}
	size := 0
	for _, of := range ss.clients {
		size += of.size
		for _, set := range of.sets {
			size -= set.size()
		}
	}
	if size != 0 {
		t.Errorf("the sizes of clients are %d more than those of their sets", size)
	}
	for i := range since {
		if ss.noteIn("alice", key(i, "eu"), web, true) {
			t.Fatal("a watch of a user that was shown little does not continue its list")
		}
		in := []fleet.ShownIn{showIn("us", nil), showIn("eu", web)}
		if _, now := ss.note("alice", key(i, ""), uint64(i), in, hub, 0); now != since[i] {
			t.Fatal("a watch at /fleet of a user that was shown little does not continue its list")
		}
	}
	if !ss.noteIn("alice", key(0, "eu"), nil, true) || !ss.noteIn("bob", key(0, "eu"), web, true) {
		t.Error("a watch continues a list that showed something else, or nothing")
	}
}

// A cluster that does not answer must not keep the watches of others open.
func TestRevocationDoesNotWaitForASlowCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rs revocations
		hang := make(chan struct{})
		yes := func() bool { return true }
		rs.add(&watchRights{allowed: yes, visible: map[string]*query.Visible{"hangs": nil},
			see: func(string) (*query.Visible, error) { <-hang; return nil, nil }})
		other := rs.add(&watchRights{allowed: yes, visible: map[string]*query.Visible{"eu": nil},
			see: func(string) (*query.Visible, error) { return unknown, nil }})
		done := make(chan struct{})
		go func() { rs.check(); close(done) }()
		synctest.Wait()
		if !other.ended.Load() {
			t.Error("the watch of eu is not ended while another cluster does not answer")
		}
		close(hang)
		<-done
	})
}

// What a user was shown of a cluster is remembered when the user asks for another one.
func TestASetIsComparedAfterARequestForOtherClusters(t *testing.T) {
	var ss shownSets
	hub := newFleetWatchHub(new(atomic.Uint64))
	key := shownKey{user: 1, of: schema.GroupVersionResource{Version: "v1", Resource: "pods"}}
	web, shop := &query.Visible{Namespaces: []string{"web"}}, &query.Visible{Namespaces: []string{"shop"}}
	_, first := ss.note("alice", key, 1, []fleet.ShownIn{showIn("eu", web)}, hub, 0)
	_, other := ss.note("alice", key, 1, []fleet.ShownIn{showIn("us", web)}, hub, 0)
	_, again := ss.note("alice", key, 1, []fleet.ShownIn{showIn("eu", shop)}, hub, 0)
	_, same := ss.note("alice", key, 1, []fleet.ShownIn{showIn("us", web), showIn("eu", shop)}, hub, 0)
	if other != first || again == first || same != again {
		t.Errorf("shown since %d, of another cluster %d, of the first one with other rights %d, and again %d", first, other,
			again, same)
	}
}

// After a restart it is not known which client was sent which version, so all of them count as one.
func TestWhatSeveralClientsOfAUserWereShownIsOneOverARestart(t *testing.T) {
	var ss shownSets
	hub := newFleetWatchHub(new(atomic.Uint64))
	key := shownKey{user: 1, of: schema.GroupVersionResource{Version: "v1", Resource: "pods"}}
	web, shop := &query.Visible{Namespaces: []string{"web"}}, &query.Visible{Namespaces: []string{"shop"}}
	note := func(client clientKey, see *query.Visible) (since uint64) {
		_, since = ss.note(client, key, 1, []fleet.ShownIn{showIn("eu", see)}, hub, 0)
		return since
	}
	first, second := note("proxy", web), note("alice", shop)
	again := note("proxy", web)
	if was, ok := hub.lastShown(1); again != first || !ok || was.since <= second || was.in[0] != showIn("eu", web) {
		t.Errorf("shown since %d and %d, and to the other client since %d; over a restart %v", first, again, second, was)
	}
}

// What is remembered for a restart is bounded. Of a user that is forgotten, it is still known to be restricted.
func TestWhatUsersAreShownIsBoundedOverARestart(t *testing.T) {
	hub := newFleetWatchHub(new(atomic.Uint64))
	in := make([]fleet.ShownIn, 100)
	for i := range in {
		in[i] = fleet.ShownIn{Cluster: fmt.Sprintf("%03d", i), Fingerprint: 7}
	}
	users := uint64(maxShownOnDisk/len(in) + 50)
	for user := range users {
		hub.noteShown(user, in, true)
	}
	known, size := 0, 0
	for user := range users {
		was, ok := hub.lastShown(user)
		if size += len(was.in); ok {
			known++
		}
		if !hub.wasRestricted(user) {
			t.Errorf("user %d is not known to be restricted", user)
		}
	}
	if size != hub.shownSize || size > maxShownOnDisk || known < maxShownOnDisk/len(in)-1 {
		t.Errorf("%d users are known, with %d clusters; counted are %d", known, size, hub.shownSize)
	}
	for user := range uint64(maxRestricted + 1) {
		hub.noteShown(user, in[:1], true)
	}
	if n := len(hub.restricted); n > maxRestricted {
		t.Errorf("%d users are remembered", n)
	}
}
