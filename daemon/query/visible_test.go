package query

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

func TestVisibleContains(t *testing.T) {
	some := &Visible{Namespaces: []string{"a", "shop"}, Keys: []object.Key{"node-1", "web/front"}, Names: []string{"ca"}}
	for key, want := range map[object.Key]bool{
		"shop/any": true, "a/any": true, "b/any": false, "web/front": true, "web/back": false, "web/ca": true, "ca": true,
		"node-1": true, "node-2": false, "shop": false, "sho/p": false, "": false,
	} {
		if got := some.Contains(key); got != want {
			t.Errorf("%q is visible: %v, want %v", key, got, want)
		}
		if (&Visible{}).Contains(key) || !(&Visible{All: true}).Contains(key) {
			t.Errorf("%q is in the empty set, or not in the whole one", key)
		}
	}
	if some.Empty() || !(&Visible{}).Empty() || (&Visible{All: true}).Empty() {
		t.Error("Empty is wrong")
	}
	if !some.Equal(some) || some.Equal(&Visible{}) || (&Visible{All: true}).Equal(&Visible{}) {
		t.Error("Equal is wrong")
	}
}

func TestSetsThatDifferHaveDifferentFingerprints(t *testing.T) {
	all := &Visible{All: true, Names: []string{"ignored"}}
	if all.Fingerprint() != (&Visible{All: true}).Fingerprint() || !all.Equal(&Visible{All: true}) {
		t.Error("sets of everything differ")
	}
	seen := map[uint64]*Visible{}
	for _, v := range []*Visible{all, {}, {Namespaces: []string{"a"}}, {Keys: []object.Key{"a"}}, {Names: []string{"a"}},
		{Names: []string{"a", "b"}}, {Names: []string{"ab"}}, {Names: []string{"a", ""}}, {Names: []string{"a,b"}},
		{Namespaces: []string{"a"}, Keys: []object.Key{"b"}}, {Namespaces: []string{"a", "b"}}} {
		if other := seen[v.Fingerprint()]; other != nil || v.Fingerprint() == 0 {
			t.Errorf("%+v and %+v have one fingerprint", v, other)
		}
		seen[v.Fingerprint()] = v
		same := &Visible{All: v.All, Namespaces: slices.Clone(v.Namespaces), Keys: slices.Clone(v.Keys),
			Names: slices.Clone(v.Names)}
		if same.Fingerprint() != v.Fingerprint() {
			t.Errorf("equal sets have different fingerprints: %+v", v)
		}
	}
}

func randomVisible(rnd *rand.Rand, keys []object.Key) *Visible {
	v := &Visible{}
	for range rnd.IntN(4) {
		v.Namespaces = append(v.Namespaces, fmt.Sprintf("ns-%d", rnd.IntN(12)))
	}
	for range rnd.IntN(4) {
		v.Keys = append(v.Keys, keys[rnd.IntN(len(keys))], object.NewKey("ns-1", "unknown"))
	}
	if rnd.IntN(3) == 0 {
		v.Names = []string{"web-7", "unknown"}
	}
	for _, sorted := range [][]string{v.Namespaces, v.Names} {
		slices.Sort(sorted)
	}
	slices.Sort(v.Keys)
	v.Namespaces, v.Keys = slices.Compact(v.Namespaces), slices.Compact(v.Keys)
	return v
}

// A list over what is visible equals the list over everything without what is not visible, for any request.
func TestAListHasExactlyWhatIsVisible(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	e := newEngine(t, options{})
	for _, indexed := range []bool{true, false} {
		s := newStore(t, store.Packed, indexed)
		var keys []object.Key
		s.Begin()
		for i := range 200 {
			keys = append(keys, object.NewKey(fmt.Sprintf("ns-%d", i%10), fmt.Sprintf("web-%d", i)))
			s.put(keys[i], testPod(i))
		}
		s.put("ns-7/web-7", testPod(7))
		s.put("ns-8/web-7", testPod(8))
		s.Commit()
		whole := View[*blob]{Cluster: "eu", Snapshot: s.snapshot()}
		for range 300 {
			part := whole
			part.Visible = randomVisible(rnd, keys)
			req := Request{Resource: "pods", Limit: rnd.IntN(3) * 7,
				Selection: mustSelect(t, pick(rnd, "", "tier=front", "tier"), pick(rnd, "", "metadata.name=web-7",
					"metadata.namespace=ns-7"), pick(rnd, "", "spec.priority > 3"))}
			req.Namespace = pick(rnd, "", "", "ns-7", "ns-11")
			if rnd.IntN(3) == 0 {
				req.Order = mustOrder(t, "-spec.priority")
			}
			var want []object.Key
			all := req
			all.Limit = 0
			for _, it := range mustList(t, e, all, whole).Items {
				if part.Visible.Contains(it.Entry.Key) {
					want = append(want, it.Entry.Key)
				}
			}
			var got []object.Key
			for {
				res := mustList(t, e, req, part)
				for _, it := range res.Items {
					got = append(got, it.Entry.Key)
				}
				if left := len(want) - len(got); res.Remaining != Unknown && res.Remaining != left {
					t.Errorf("%d items remain, want %d", res.Remaining, left)
				}
				if req.Continue = res.Continue; req.Continue == "" {
					break
				}
			}
			all.CountOnly, all.Order = true, Order{}
			if n := mustList(t, e, all, part).Count; !slices.Equal(got, want) || n != len(want) {
				t.Fatalf("%+v of %+v: got %v, counted %d, want %v", req, part.Visible, got, n, want)
			}
		}
	}
}

func pick(rnd *rand.Rand, from ...string) string { return from[rnd.IntN(len(from))] }

func TestAListExpiresWhenWhatIsVisibleChanges(t *testing.T) {
	pods := podStore(t, 20, store.Live).snapshot()
	view := func(cluster string, v *Visible) View[*blob] {
		return View[*blob]{Cluster: cluster, Snapshot: pods, Visible: v}
	}
	some, other := &Visible{Namespaces: []string{"ns-1", "ns-2"}}, &Visible{Namespaces: []string{"ns-1"}}
	for name, c := range map[string]struct {
		first, later []View[*blob]
		expired      bool
	}{
		"the same":             {[]View[*blob]{view("eu", some)}, []View[*blob]{view("eu", some)}, false},
		"fewer":                {[]View[*blob]{view("eu", some)}, []View[*blob]{view("eu", other)}, true},
		"everything before":    {[]View[*blob]{view("eu", nil)}, []View[*blob]{view("eu", some)}, true},
		"everything now":       {[]View[*blob]{view("eu", some)}, []View[*blob]{view("eu", nil)}, true},
		"a cluster has joined": {[]View[*blob]{view("eu", some)}, []View[*blob]{view("eu", some), view("us", other)}, false},
		"a cluster has left": {[]View[*blob]{view("eu", some), view("us", some)}, []View[*blob]{view("eu", some)},
			true},
		"a cluster has left, of a user that may see everything": {[]View[*blob]{view("eu", nil), view("us", nil)},
			[]View[*blob]{view("eu", nil)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, options{})
			req := Request{Resource: "pods", Limit: 1}
			req.Continue = mustList(t, e, req, c.first...).Continue
			if c.expired {
				wantError(t, e, ErrExpired, req, c.later...)
			} else {
				mustList(t, e, req, c.later...)
			}
		})
	}
}

func TestAUserWithManyListsLosesItsOwn(t *testing.T) {
	e, pods := newEngine(t, options{maxLists: 10}), podStore(t, 20, store.Live).snapshot()
	view := View[*blob]{Cluster: "eu", Snapshot: pods}
	ann := Request{User: "ann", Resource: "pods", Limit: 1}
	kept := mustList(t, e, ann, view).Continue
	var last string
	for range 50 {
		last = mustList(t, e, Request{User: "bob", Resource: "pods", Limit: 1}, view).Continue
	}
	ann.Continue = kept
	mustList(t, e, ann, view)
	mustList(t, e, Request{User: "bob", Resource: "pods", Limit: 1, Continue: last}, view)
	if n := e.pages.len(); n != 10 {
		t.Errorf("%d lists are held", n)
	}
}

func TestNamesThatAreVisibleEverywhereAreLookedUpOrPaced(t *testing.T) {
	e := newEngine(t, options{limits: limits{maxScanned: 500}})
	for _, indexed := range []bool{true, false} {
		s := newStore(t, store.Packed, indexed)
		s.Begin()
		for i := range 2000 {
			s.put(object.NewKey(fmt.Sprintf("ns-%d", i%10), fmt.Sprintf("web-%d", i)), testPod(i))
		}
		s.Commit()
		view := View[*blob]{Cluster: "eu", Snapshot: s.snapshot(),
			Visible: &Visible{Names: []string{"unknown", "web-1500", "web-7"}}}
		for name, req := range map[string]Request{"list": {Resource: "pods"}, "page": {Resource: "pods", Limit: 1},
			"count": {Resource: "pods", CountOnly: true}, "order": {Resource: "pods", Order: mustOrder(t, "metadata.name")}} {
			paced := 0
			req.Pace = func(int64) error { paced++; return nil }
			res, err := e.List(t.Context(), req, []View[*blob]{view})
			switch {
			case !indexed:
				if !errors.Is(err, ErrTooMuch) || paced < 500/paceEvery {
					t.Errorf("%s: all keys have to be read, the error is %v, and it was paced %d times", name, err, paced)
				}
			case err != nil:
				t.Errorf("%s: %v", name, err)
			case name == "count" && res.Count != 2, name == "page" && (len(res.Items) != 1 || res.Remaining != 1),
				(name == "list" || name == "order") && len(res.Items) != 2:
				t.Errorf("%s: %d items, %d remain, count %d", name, len(res.Items), res.Remaining, res.Count)
			}
		}
	}
}
