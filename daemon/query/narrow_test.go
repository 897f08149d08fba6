package query

import (
	"fmt"
	"testing"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// countingEngine returns an engine that counts how many objects it reads.
func countingEngine(t *testing.T, reads *int) *Engine[*blob] {
	t.Helper()
	e, err := NewEngine(func(e *store.Entry[*blob], dst []byte) []byte {
		*reads++
		return blobBytes(e, dst)
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Of the 1,000 pods each app has a seventh, each tier a half, each version a fifth, each namespace a tenth.
func TestObjectsThatTheLabelIndexDecidesAreNotRead(t *testing.T) {
	view := View[*blob]{Cluster: "eu", Snapshot: podStore(t, 1000, store.Packed).snapshot()}
	for _, c := range []struct {
		labels    string
		namespace string
		limit     int
		want      int
		reads     int // at most
	}{
		{labels: "app=web-1", want: 143, reads: 0},
		{labels: "app=web-1,tier=front", want: 71, reads: 0},
		{labels: "app in (web-1, web-2, none)", want: 286, reads: 0},
		{labels: "app=web-1,version in (0, 1),tier in (front, back)", want: 58, reads: 0},
		{labels: "app=web-1", namespace: "ns-3", want: 14, reads: 0},
		{labels: "app=none", want: 0, reads: 0},
		{labels: "app=web-1,tier!=front", want: 72, reads: 143},
		{labels: "app=web-1,!tier", want: 0, reads: 143},
		{labels: "tier", want: 1000, reads: 1000},
		{labels: "app=web-1", limit: 10, want: 10, reads: 0},
	} {
		reads := 0
		e := countingEngine(t, &reads)
		req := Request{Namespace: c.namespace, Limit: c.limit, Selection: mustSelect(t, c.labels, "", "")}
		if res := mustList(t, e, req, view); len(res.Items) != c.want || reads > c.reads {
			t.Errorf("%s in %q: %d found and %d read, want %d and at most %d", c.labels, c.namespace, len(res.Items),
				reads, c.want, c.reads)
		}
		if c.limit > 0 {
			continue
		}
		reads, req.CountOnly = 0, true
		if res := mustList(t, e, req, view); res.Count != c.want || reads > c.reads {
			t.Errorf("%s in %q: %d counted and %d read, want %d and at most %d", c.labels, c.namespace, res.Count,
				reads, c.want, c.reads)
		}
	}
}

// The index is not useful for a label that nearly all objects have.
func TestPageOfACommonLabelDoesNotUseTheIndex(t *testing.T) {
	snap := podStore(t, 5000, store.Live).snapshot()
	all := mustSelect(t, "app.kubernetes.io/name=web", "", "")
	for _, c := range []struct {
		namespace string
		limit     int
		want      bool
	}{{"", 1, false}, {"", 0, true}, {"", 100, true}, {"ns-1", 1, false}, {"ns-1", 0, true}, {"none", 0, false}} {
		if _, ok := narrow(snap, c.namespace, all, c.limit); ok != c.want {
			t.Errorf("namespace %q, limit %d: index used %v, want %v", c.namespace, c.limit, ok, c.want)
		}
	}
}

// An index may list an object under two values of one label, although no object has two.
func TestObjectThatTheIndexHasTwiceIsListedOnce(t *testing.T) {
	w, err := store.New(store.Options[*blob]{Indexes: map[string]store.IndexFunc[*blob]{
		labelIndex: func(*blob) ([]string, error) { return []string{"app=a", "app=b"}, nil },
	}})
	if err != nil {
		t.Fatal(err)
	}
	w.Begin()
	for i := range 10 {
		name := fmt.Sprintf("o%d", i)
		w.Put(object.Item[*blob]{Key: object.NewKey("n", name), Version: "1",
			Value: &blob{fmt.Appendf(nil, `{"metadata":{"name":%q,"labels":{"app":"a"}}}`, name)}})
	}
	w.Commit()
	req := Request{Selection: mustSelect(t, "app in (a, b)", "", "")}
	if res := mustList(t, newEngine(t, options{}), req,
		View[*blob]{Cluster: "eu", Snapshot: w.Reader().Snapshot()}); len(res.Items) != 10 {
		t.Errorf("the list has %d of 10 objects", len(res.Items))
	}
	req.CountOnly = true
	if res := mustList(t, newEngine(t, options{}), req,
		View[*blob]{Cluster: "eu", Snapshot: w.Reader().Snapshot()}); res.Count != 10 {
		t.Errorf("%d of 10 are counted", res.Count)
	}
}
