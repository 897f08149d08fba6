package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

func TestListsAreConsistentWhileTheStoreChanges(t *testing.T) {
	e, s := newEngine(t, options{maxLists: 100}), podStore(t, 200, store.Packed)
	reader := s.Reader()
	sel, orders := mustSelect(t, "tier", "spec.nodeName!=x", "spec.priority >= 0"), []Order{{},
		mustOrder(t, "-metadata.name")}
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			for range 5 {
				req := Request{Resource: "pods", Limit: 30, Selection: sel, Order: orders[g%2]}
				seen := map[object.Key]bool{}
				for {
					res, err := e.List(context.Background(), req, []View[*blob]{{Cluster: "eu", Snapshot: reader.Snapshot()}})
					if err != nil {
						t.Error(err)
						return
					}
					for _, it := range res.Items {
						seen[it.Entry.Key] = true
					}
					if req.Continue = res.Continue; req.Continue == "" {
						break
					}
				}
				if len(seen) != 200 {
					t.Errorf("a list of 200 objects has %d", len(seen))
				}
			}
		})
	}
	for i := range 200 { // each is deleted and recreated in one commit, so that there are always 200
		s.Begin()
		key := object.NewKey(fmt.Sprintf("ns-%d", i%10), fmt.Sprintf("web-%d", i))
		s.version++
		s.Delete(key, object.Version(fmt.Sprint(s.version)))
		s.put(key, testPod(i))
		s.Commit()
	}
	wg.Wait()
	if e.pages.len() != 0 {
		t.Errorf("%d lists are held", e.pages.len())
	}
}

func TestWorkIsBounded(t *testing.T) {
	view := View[*blob]{Cluster: "eu", Snapshot: podStore(t, 100, store.Live).snapshot()}
	pods := func(r Request) Request { r.Resource = "pods"; return r }
	for name, c := range map[string]struct {
		limits limits
		req    Request
		ok     bool
	}{
		"scanned":        {limits{maxScanned: 99}, Request{Selection: mustSelect(t, "none", "", "")}, false},
		"scanned enough": {limits{maxScanned: 100}, Request{Selection: mustSelect(t, "none", "", "")}, true},
		"scanned in a count": {limits{maxScanned: 99}, Request{Selection: mustSelect(t, "none", "", ""), CountOnly: true},
			false},
		"scanned in a page":    {limits{maxScanned: 11}, Request{Limit: 10}, true},
		"scanned in namespace": {limits{maxScanned: 10}, Request{Namespace: "ns-1"}, true},
		"results":              {limits{maxResults: 99}, Request{}, false},
		"results of a page":    {limits{maxResults: 10}, Request{Limit: 10}, true},
		"results sorted":       {limits{maxResults: 99}, Request{Limit: 10, Order: mustOrder(t, "metadata.name")}, false},
		"bytes":                {limits{maxBytes: 10 << 10}, Request{}, false},
		"bytes sorted":         {limits{maxBytes: 10 << 10}, Request{Order: mustOrder(t, "spec.priority")}, false},
		"bytes of a page":      {limits{maxBytes: 10 << 10}, Request{Limit: 1}, true},
		"bytes of the values": {limits{maxBytes: 64 << 10},
			Request{Limit: 1, Order: mustOrder(t, "metadata.annotations.note")}, false},
		"no bounds": {limits{-1, -1, -1, -1}, Request{Order: mustOrder(t, "metadata.annotations")}, true},
	} {
		e := newEngine(t, options{limits: c.limits})
		if req := pods(c.req); c.ok {
			mustList(t, e, req, view)
		} else if err := wantError(t, e, ErrTooMuch, req, view); !strings.Contains(err.Error(), "list pods") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// slowly takes a second to read an object.
func slowly(e *store.Entry[*blob], dst []byte) []byte {
	time.Sleep(time.Second)
	return blobBytes(e, dst)
}

func TestTimeIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := NewEngine(slowly)
		if err != nil {
			t.Fatal(err)
		}
		view := View[*blob]{Cluster: "eu", Snapshot: podStore(t, 1000, store.Live).snapshot()}
		req := Request{Resource: "pods", Selection: mustSelect(t, "none", "", "")}
		began := time.Now()
		wantError(t, e, ErrTooMuch, req, view)
		if took := time.Since(began); took > contextEvery*time.Second {
			t.Errorf("it took %v", took)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		if _, err := e.List(ctx, req, []View[*blob]{view}); !errors.Is(err, context.DeadlineExceeded) ||
			errors.Is(err, ErrTooMuch) {
			t.Errorf("a context that ends: %v", err)
		}
	})
}

func TestErrorNamesTheBrokenObject(t *testing.T) {
	s := newStore(t, store.Live, false)
	s.Begin()
	s.put("ns/broken", []byte(`{"metadata":`))
	s.Commit()
	e := newEngine(t, options{})
	for _, req := range []Request{{Resource: "pods", Selection: mustSelect(t, "a", "", "")},
		{Resource: "pods", Order: mustOrder(t, "a")}} {
		_, err := e.List(context.Background(), req, []View[*blob]{{Cluster: "eu", Snapshot: s.snapshot()}})
		if err == nil || errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "pods ns/broken of cluster eu") {
			t.Errorf("it gives %v", err)
		}
	}
	if res := mustList(t, e, Request{Resource: "pods"},
		View[*blob]{Cluster: "eu", Snapshot: s.snapshot()}); len(res.Items) != 1 {
		t.Error("a list that need not read the object fails")
	}
}

func TestOnlyNeededObjectsAreRead(t *testing.T) {
	reads := 0
	e, err := NewEngine(func(e *store.Entry[*blob], dst []byte) []byte {
		reads++
		return blobBytes(e, dst)
	})
	if err != nil {
		t.Fatal(err)
	}
	view := View[*blob]{Cluster: "eu", Snapshot: podStore(t, 1000, store.Packed).snapshot()}
	for _, c := range []struct {
		req         Request
		items, read int
	}{
		{Request{}, 1000, 0},
		{Request{Namespace: "ns-3"}, 100, 0},
		{Request{CountOnly: true}, 0, 0},
		{Request{Selection: mustSelect(t, "", "metadata.name=web-13", "")}, 1, 0},
		{Request{Namespace: "ns-3", Selection: mustSelect(t, "app", "metadata.name=web-13", "")}, 1, 1},
		{Request{Selection: mustSelect(t, "app", "metadata.name=web-13,metadata.namespace=ns-3", "")}, 1, 1},
		{Request{Namespace: "ns-2", Selection: mustSelect(t, "app", "metadata.namespace=ns-3", "")}, 0, 0},
		{Request{Namespace: "ns-3", Selection: mustSelect(t, "tier=back", "", "")}, 100, 100},
		{Request{Namespace: "ns-3", Order: mustOrder(t, "spec.priority")}, 100, 100},
		{Request{Selection: mustSelect(t, "tier=back", "", ""), Order: mustOrder(t, "spec.priority")}, 500, 1000},
		// ns-0 has no match, and one more object is read to know that there are more
		{Request{Limit: 10, Selection: mustSelect(t, "tier=back", "", "")}, 10, 111},
	} {
		reads = 0
		if res := mustList(t, e, c.req, view); len(res.Items) != c.items || reads > c.read {
			t.Errorf("%+v gives %d items and reads %d objects, want %d and at most %d", c.req, len(res.Items),
				reads, c.items, c.read)
		}
	}
}

// No page reads objects that earlier pages have read.
func TestPagesDoNotReadObjectsTwice(t *testing.T) {
	for _, order := range []string{"", "metadata.name"} {
		reads := 0
		e, err := NewEngine(func(e *store.Entry[*blob], dst []byte) []byte {
			reads++
			return blobBytes(e, dst)
		})
		if err != nil {
			t.Fatal(err)
		}
		pods := podStore(t, 500, store.Live).snapshot()
		req := Request{Limit: 7, Selection: mustSelect(t, "tier=back", "", ""), Order: mustOrder(t, order)}
		items, pages := 0, 0
		for {
			res := mustList(t, e, req, View[*blob]{Cluster: "eu", Snapshot: pods}, View[*blob]{Cluster: "us", Snapshot: pods})
			items, pages = items+len(res.Items), pages+1
			if req.Continue = res.Continue; req.Continue == "" {
				break
			}
		}
		if items != 500 || pages != 72 || reads > 1000+pages {
			t.Errorf("%d items on %d pages needed %d reads", items, pages, reads)
		}
	}
}

func TestObjectsWithoutNamespaces(t *testing.T) {
	s := newStore(t, store.Live, true)
	s.Begin()
	for _, n := range []string{"b", "a", "c"} {
		s.put(object.NewKey("", n), fmt.Appendf(nil, `{"metadata":{"name":%q}}`, n))
	}
	s.Commit()
	e, view := newEngine(t, options{}), View[*blob]{Cluster: "eu", Snapshot: s.snapshot()}
	if got := names(mustList(t, e, Request{Resource: "nodes"}, view)); !slices.Equal(got,
		[]string{"eu:a", "eu:b", "eu:c"}) {
		t.Errorf("all are %v", got)
	}
	if got := names(mustList(t, e, Request{Resource: "nodes", Selection: mustSelect(t, "", "metadata.name=b", "")},
		view)); !slices.Equal(got, []string{"eu:b"}) {
		t.Errorf("b is %v", got)
	}
	if got := names(mustList(t, e, Request{Resource: "nodes", Selection: mustSelect(t, "", "metadata.namespace=", "")},
		view)); len(got) != 3 {
		t.Errorf("those without a namespace are %v", got)
	}
	if res := mustList(t, e, Request{Resource: "nodes"}); res.Items != nil || res.Continue != "" || res.Remaining != 0 {
		t.Errorf("no cluster has %+v", res)
	}
}

func TestEngineChecksItsArguments(t *testing.T) {
	if _, err := NewEngine[*blob](nil); err == nil {
		t.Error("NewEngine accepts a missing bytes function")
	}
	if _, err := newEngine(t, options{}).List(context.Background(), Request{Resource: "pods"},
		[]View[*blob]{{Cluster: "eu"}}); err == nil {
		t.Error("List accepts a view without a snapshot")
	}
	if err := wantError(t, newEngine(t, options{}), ErrInvalid,
		Request{Resource: "pods", Limit: -1}); !strings.Contains(err.Error(), "-1") {
		t.Error(err)
	}
}
