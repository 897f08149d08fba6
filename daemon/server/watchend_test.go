package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/mirador-k8s/mirador/object"
)

func (s *testServer) fleetWatchHub() *fleetWatchHub { return s.fleetHubs.get(s.res.GVR(), s.fleet) }

// endFeeds ends every watch of a view.
func (s *testServer) endFeeds(view string, err error) {
	if view == "/fleet" {
		h := s.fleetWatchHub()
		h.mu.Lock()
		defer h.mu.Unlock()
		h.feeds.end(err)
		return
	}
	s.clusterHubs.mu.Lock()
	h := s.clusterHubs.all[s.res]
	s.clusterHubs.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.feeds.end(err)
}

// watchEnds has every reason for which a watch ends, and the code of the ERROR event; 0 means that there is none.
var watchEnds = map[string]struct {
	end  func(s *testServer, view string)
	code int32
}{
	"read too slowly":    {func(s *testServer, view string) { s.endFeeds(view, errTooSlow) }, http.StatusGone},
	"history reset":      {func(s *testServer, view string) { s.endFeeds(view, errHistoryReset) }, http.StatusGone},
	"changes merged":     {func(s *testServer, view string) { s.endFeeds(view, errMerged) }, http.StatusGone},
	"relisted":           {func(s *testServer, view string) { s.endFeeds(view, errRelisted) }, http.StatusGone},
	"no longer mirrored": {func(s *testServer, view string) { s.endFeeds(view, errUnserved) }, 0},
	"a fault without names": {func(s *testServer, view string) { s.endFeeds(view, errors.New("a fault")) },
		http.StatusInternalServerError},
}

func TestClientLearnsOfEveryEndOfAWatchOnBothViews(t *testing.T) {
	s := newTestServer(t)
	for name, c := range watchEnds {
		for _, view := range []string{"/clusters/eu", "/fleet"} {
			lines := s.watched(t, view, s.version(t, view), func() { c.end(s, view) })
			switch {
			case c.code == 0 && len(lines) != 0:
				t.Errorf("%s on %s: %+v", name, view, lines)
			case c.code != 0 && (len(lines) != 1 || lines[0].Type != "ERROR" || lines[0].Object.Code != c.code):
				t.Errorf("%s on %s: %+v", name, view, lines)
			case c.code == http.StatusGone && lines[0].Object.Reason != metav1.StatusReasonExpired:
				t.Errorf("%s on %s: %+v", name, view, lines)
			}
		}
	}
	for _, view := range []string{"/clusters/eu", "/fleet"} {
		lines := s.watched(t, view, "1", func() {})
		if len(lines) != 1 || lines[0].Object.Code != http.StatusGone {
			t.Errorf("a version that is too old on %s: %+v", view, lines)
		}
	}
	s.clusterHubs.mu.Lock()
	left := len(s.clusterHubs.all)
	s.clusterHubs.mu.Unlock()
	if left != 0 {
		t.Errorf("%d hubs are left", left)
	}
	for _, view := range []string{"/clusters/eu", "/fleet"} { // must be last: it ends all later watches, too
		if lines := s.watched(t, view, s.version(t, view), s.Stop); len(lines) != 0 {
			t.Errorf("a shutdown on %s: %+v", view, lines)
		}
	}
}

func TestRequestsForUnknownResourcesKeepNoHub(t *testing.T) {
	s := newTestServer(t)
	for _, path := range []string{"/api/v1/chairs", "/apis/example.com/v1/tables",
		"/apis/example.com/v2/tables?watch=true"} {
		resp, err := http.Get(s.URL + "/fleet" + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: status %d, want 404", path, resp.StatusCode)
		}
	}
	s.fleetHubs.mu.Lock()
	defer s.fleetHubs.mu.Unlock()
	if len(s.fleetHubs.all) != 0 {
		t.Errorf("%d hubs are kept for resources that no cluster has", len(s.fleetHubs.all))
	}
}

func TestHeadHasTheLengthOfTheAnswer(t *testing.T) {
	s := newTestServer(t)
	for _, path := range []string{"/clusters/eu/api/v1/namespaces/web/pods/a", "/fleet/api/v1/pods"} {
		head, err := http.Head(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		head.Body.Close()
		get, err := http.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		get.Body.Close()
		if head.StatusCode != http.StatusOK || head.ContentLength != get.ContentLength || get.ContentLength <= 0 {
			t.Errorf("HEAD %s: status %d, length %d; GET has length %d", path, head.StatusCode, head.ContentLength,
				get.ContentLength)
		}
	}
}

func TestGetWaitsForTheVersionItNamesOnBothViews(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	for _, path := range []string{"/clusters/eu/api/v1/namespaces/web/pods/a", "/fleet/api/v1/namespaces/eu.web/pods/a"} {
		for version, want := range map[string]int{"0": http.StatusOK, "1": http.StatusOK, "x": http.StatusBadRequest,
			"9999999999999999999": http.StatusGatewayTimeout} {
			resp, err := http.Get(s.URL + path + "?resourceVersion=" + version)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("%s at version %s: status %d, want %d", path, version, resp.StatusCode, want)
			}
		}
	}
}

// ending is the part of an event that these tests need.
type ending struct {
	Type   string
	Object struct {
		Code   int32
		Reason metav1.StatusReason
	}
}

// watched opens a watch, ends it, and returns its events.
func (s *testServer) watched(t *testing.T, view, version string, end func()) (events []ending) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet,
		s.URL+view+"/api/v1/pods?watch=true&resourceVersion="+version, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	end()
	for in := json.NewDecoder(resp.Body); ; {
		var e ending
		if err := in.Decode(&e); errors.Is(err, io.EOF) {
			return events
		} else if err != nil {
			t.Fatalf("the watch on %s broke: %v", view, err)
		}
		events = append(events, e)
	}
}

// version returns the version of a list.
func (s *testServer) version(t *testing.T, view string) string {
	t.Helper()
	resp, err := http.Get(s.URL + view + "/api/v1/pods")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var list metav1.PartialObjectMetadataList
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil || list.ResourceVersion == "" {
		t.Fatalf("no version: %v", err)
	}
	return list.ResourceVersion
}

// client-go's RetryWatcher continues by itself from the newest version that it has received, unless the watch ends
// with 410.
func TestRetryWatcherMissesNoCoalescedChange(t *testing.T) {
	s := newTestServer(t)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: s.URL + "/clusters/eu"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	opened := make(chan struct{}, 10)
	pods := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context,
		o metav1.ListOptions) (kwatch.Interface, error) {
		w, err := client.CoreV1().Pods("").Watch(ctx, o)
		opened <- struct{}{}
		return w, err
	}}
	retry, err := watchtools.NewRetryWatcherWithContext(ctx, s.version(t, "/clusters/eu"), pods)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { retry.Stop(); <-retry.Done() }()
	<-opened
	s.clusterHubs.mu.Lock()
	hub := s.clusterHubs.all[s.res]
	s.clusterHubs.mu.Unlock()
	tell := func(key object.Key, version int) {
		e := event(key, version)
		e.Epoch = s.res.Health().Epoch
		hub.handle("eu", e)
	}
	tell("web/a", 1_000_900)
	if e := <-retry.ResultChan(); e.Type != kwatch.Modified {
		t.Fatalf("the first event is %+v", e)
	}
	tell("web/b", 1_000_850) // an earlier change that arrives later
	e := <-retry.ResultChan()
	if status, ok := e.Object.(*metav1.Status); e.Type != kwatch.Error || !ok || status.Code != http.StatusGone ||
		!strings.Contains(status.Message, "coalesced") {
		t.Errorf("the second event is %+v, and the watch continues", e)
	}
}
