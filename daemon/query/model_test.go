package query

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// thing is an object of the model.
type thing struct {
	cluster, namespace, name string
	app, tier, node, memory  string // "" for missing
	replicas                 int    // negative for missing
	created                  string
}

func (x thing) key() object.Key { return object.NewKey(x.namespace, x.name) }

func (x thing) id() string { return x.cluster + ":" + string(x.key()) }

func (x thing) json() []byte {
	meta := map[string]any{"name": x.name, "namespace": x.namespace, "creationTimestamp": x.created}
	set := map[string]string{}
	if x.app != "" {
		set["app"] = x.app
	}
	if x.tier != "" {
		set["tier"] = x.tier
	}
	if len(set) > 0 {
		meta["labels"] = set
	}
	spec := map[string]any{}
	if x.node != "" {
		spec["node"] = x.node
	}
	if x.memory != "" {
		spec["memory"] = x.memory
	}
	if x.replicas >= 0 {
		spec["replicas"] = x.replicas
	}
	raw, err := json.Marshal(map[string]any{"metadata": meta, "spec": spec})
	if err != nil {
		panic(err)
	}
	return raw
}

func randomThing(rng *rand.Rand, cluster string) thing {
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	return thing{
		cluster: cluster, namespace: pick("n", "n-1", "n0", "z"), name: fmt.Sprintf("o%d", rng.IntN(40)),
		app: pick("", "a", "b"), tier: pick("", "x", "y"), node: pick("", "x", "y"),
		memory:   pick("", "500Mi", "1Gi", "1G", "64Ki", "2000m"),
		replicas: rng.IntN(6) - 1, created: fmt.Sprintf("2026-01-%02dT00:00:00Z", 1+rng.IntN(9)),
	}
}

// A choice is a text of a request and its meaning in the model.
type choice struct {
	text string
	want func(thing) bool
}

func anything(thing) bool { return true }

var (
	labelChoices = []choice{{"", anything}, {"", anything}, {"app=a", func(x thing) bool { return x.app == "a" }},
		{"app!=a", func(x thing) bool { return x.app != "a" }}, {"!app", func(x thing) bool { return x.app == "" }},
		{"app in (a, b),tier", func(x thing) bool { return x.app != "" && x.tier != "" }},
		{"tier=x,app==b", func(x thing) bool { return x.tier == "x" && x.app == "b" }},
		{"app in (a, c),tier in (x, y)", func(x thing) bool { return x.app == "a" && x.tier != "" }}, {"app=c",
			func(thing) bool { return false }}}
	fieldChoices = []choice{{"", anything}, {"", anything}, {"spec.node=x", func(x thing) bool { return x.node == "x" }},
		{"spec.node=", func(x thing) bool { return x.node == "" }},
		{"spec.replicas!=2", func(x thing) bool { return x.replicas != 2 }},
		{"metadata.name=o3", func(x thing) bool { return x.name == "o3" }},
		{"metadata.namespace=n0", func(x thing) bool { return x.namespace == "n0" }},
		{"metadata.namespace=n0,metadata.name=o3", func(x thing) bool { return x.namespace == "n0" && x.name == "o3" }},
		{"metadata.namespace!=n0,metadata.name!=o3", func(x thing) bool { return x.namespace != "n0" && x.name != "o3" }},
		{"metadata.namespace=", func(x thing) bool { return false }}}
	whereChoices = []choice{{"", anything}, {"", anything}, {"", anything},
		{"spec.replicas > 2", func(x thing) bool { return x.replicas > 2 }},
		{"cluster != 'c1'", func(x thing) bool { return x.cluster != "c1" }},
		{"has(spec.memory) && spec.memory.endsWith('i')", func(x thing) bool { return strings.HasSuffix(x.memory, "i") }}}
	orderChoices = []struct {
		text    string
		compare func(a, b thing) int
	}{
		{"", nil},
		{"", nil},
		{"spec.replicas",
			func(a, b thing) int { return missingLast(a.replicas < 0, b.replicas < 0, a.replicas-b.replicas) }},
		{"-spec.replicas,-metadata.creationTimestamp", func(a, b thing) int {
			return cmp.Or(missingLast(a.replicas < 0, b.replicas < 0, b.replicas-a.replicas),
				strings.Compare(b.created, a.created))
		}},
		{"spec.memory,-metadata.name", func(a, b thing) int {
			c := 0
			if a.memory != "" && b.memory != "" {
				q := resource.MustParse(a.memory)
				c = q.Cmp(resource.MustParse(b.memory))
			}
			return cmp.Or(missingLast(a.memory == "", b.memory == "", c), strings.Compare(b.name, a.name))
		}},
	}
)

func missingLast(a, b bool, c int) int {
	switch {
	case a && b:
		return 0
	case a:
		return 1
	case b:
		return -1
	}
	return c
}

// world has three clusters and their objects in the model.
type world struct {
	stores map[string]*testStore
	things map[string]thing // by id
}

func newWorld(t *testing.T, rng *rand.Rand) *world {
	w := &world{map[string]*testStore{}, map[string]thing{}}
	for _, c := range []string{"c1", "c2", "c10"} {
		w.stores[c] = newStore(t, []store.Layout{store.Live, store.Packed}[rng.IntN(2)], rng.IntN(2) == 0)
		w.change(rng, c, rng.IntN(150))
	}
	return w
}

func (w *world) change(rng *rand.Rand, cluster string, n int) {
	s := w.stores[cluster]
	s.Begin()
	for range n {
		x := randomThing(rng, cluster)
		if _, exists := w.things[x.id()]; exists && rng.IntN(3) == 0 {
			s.version++
			s.Delete(x.key(), object.Version(fmt.Sprint(s.version)))
			delete(w.things, x.id())
			continue
		}
		s.put(x.key(), x.json())
		w.things[x.id()] = x
	}
	s.Commit()
}

func (w *world) views(rng *rand.Rand) (views []View[*blob]) {
	for c, s := range w.stores {
		views = append(views, View[*blob]{Cluster: c, Snapshot: s.snapshot()})
	}
	rng.Shuffle(len(views), func(i, j int) { views[i], views[j] = views[j], views[i] })
	return views
}

// want returns the answer of the model.
func (w *world) want(keep func(thing) bool, compare func(a, b thing) int) (ids []string) {
	var found []thing
	for _, x := range w.things {
		if keep(x) {
			found = append(found, x)
		}
	}
	slices.SortFunc(found, func(a, b thing) int {
		c := 0
		if compare != nil {
			c = compare(a, b)
		}
		return cmp.Or(c, strings.Compare(a.cluster, b.cluster), strings.Compare(string(a.key()), string(b.key())))
	})
	for _, x := range found {
		ids = append(ids, x.id())
	}
	return ids
}

func TestListsEqualAModelForAnyPageSize(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 15 {
		w, e := newWorld(t, rng), newEngine(t, options{})
		for range 40 {
			checkOneList(t, rng, w, e)
		}
		if e.pages.len() != 0 {
			t.Errorf("%d lists are held after all were read to their end", e.pages.len())
		}
	}
}

func checkOneList(t *testing.T, rng *rand.Rand, w *world, e *Engine[*blob]) {
	label, field := labelChoices[rng.IntN(len(labelChoices))], fieldChoices[rng.IntN(len(fieldChoices))]
	where := whereChoices[rng.IntN(len(whereChoices))]
	order := orderChoices[rng.IntN(len(orderChoices))]
	req := Request{Namespace: []string{"", "", "n", "n0", "none"}[rng.IntN(5)], Resource: "things",
		Selection: mustSelect(t, label.text, field.text, where.text), Order: mustOrder(t, order.text)}
	want := w.want(func(x thing) bool {
		return (req.Namespace == "" || x.namespace == req.Namespace) && label.want(x) && field.want(x) && where.want(x)
	}, order.compare)
	counted := req
	counted.CountOnly = true
	if res := mustList(t, e, counted, w.views(rng)...); res.Count != len(want) || res.Items != nil {
		t.Fatalf("%+v counts %d and gives %d items, want %d", req, res.Count, len(res.Items), len(want))
	}
	var got []string
	for views := w.views(rng); ; {
		req.Limit = []int{0, 1, 3, 7, 50}[rng.IntN(5)]
		res := mustList(t, e, req, views...)
		if again := mustAgain(t, rng, e, req, views, res); !slices.Equal(names(again), names(res)) {
			t.Fatalf("%+v: the repeated page has %v, want %v", req, names(again), names(res))
		}
		got = append(got, names(res)...)
		if req.Limit > 0 && len(res.Items) > req.Limit || req.Limit > 0 && len(res.Items) < req.Limit && res.Continue != "" {
			t.Fatalf("%+v gives %d items, and the token %q", req, len(res.Items), res.Continue)
		}
		if left := len(want) - len(got); res.Remaining != left &&
			(res.Remaining != Unknown || req.Selection.Empty() || order.text != "") {
			t.Fatalf("%+v: Remaining is %d, want %d", req, res.Remaining, left)
		}
		if res.Continue == "" {
			break
		}
		req.Continue = res.Continue
		w.change(rng, []string{"c1", "c2", "c10"}[rng.IntN(3)], rng.IntN(10)) // the list must not contain this change
		views = w.views(rng)[:rng.IntN(4)]
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%+v gives\n%v, want\n%v", req, got, want)
	}
}

// mustAgain requests a page again, like a client that lost the answer. The last page cannot be repeated, because it
// ends the list.
func mustAgain(t *testing.T, rng *rand.Rand, e *Engine[*blob], req Request, views []View[*blob],
	res *Result[*blob]) *Result[*blob] {
	if req.Continue == "" || res.Continue == "" || rng.IntN(4) > 0 {
		return res
	}
	again := mustList(t, e, req, views...)
	if again.Continue != res.Continue {
		t.Fatalf("the same page has the tokens %q and %q", res.Continue, again.Continue)
	}
	return again
}
