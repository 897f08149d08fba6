package cases

import (
	"context"
	"maps"
	"math/rand/v2"
	"runtime"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/dev/bench/feed"
	"github.com/mirador-k8s/mirador/dev/bench/harness"
	"github.com/mirador-k8s/mirador/dev/bench/measure"
	"github.com/mirador-k8s/mirador/dev/testpods"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// growthSizes are the numbers of objects at which costs are measured.
var growthSizes = []int{1_000, 10_000, 100_000}

// The goals for the exponent. Costs of the whole store may grow linearly, with room for the noise of three points.
// Costs of one object may grow only because a large store exceeds the processor's caches, which between a thousand and
// a hundred thousand objects looks like a growth with the square root.
const (
	notMoreThanLinear = 1.1
	notWithTheNumber  = 0.6
)

// growthCosts are the measured costs of stores, with their units.
var growthCosts = []struct {
	figure, name, unit string
	most               float64
}{
	{"heap", "growth: heap of a store", "MiB", notMoreThanLinear},
	{"get", "growth: Get by key", "ns", notWithTheNumber},
	{"update", "growth: update", "ns", notWithTheNumber},
	{"iterate", "growth: the whole store, iterated", "us", notMoreThanLinear},
}

// growthSample is how many objects of a store are written, and read if it is packed: all, or some of them at random.
const growthSample = 6_000

// growth measures how the costs of a store grow with its size.
func growth() harness.Case {
	c := harness.Case{Name: "growth", Repeat: 1}
	for _, n := range growthSizes {
		c.Variants = append(c.Variants, growthVariant(peer, n, func(pods []*corev1.Pod) (grown, error) {
			in, err := peerStore(pods)
			return grown{writer: indexWriter{in}, get: func(key string) bool { _, ok, _ := in.GetByKey(key); return ok },
				iterate: func() { iterateList(in) }}, err
		}))
		for _, l := range layouts {
			c.Variants = append(c.Variants, growthVariant(l.String(), n, func(pods []*corev1.Pod) (grown, error) {
				// Without a read cache: it would hold a large share of a small store only.
				w, err := ourStore(l, -1, pods)
				if err != nil {
					return grown{}, err
				}
				r := w.Reader()
				return grown{writer: ownWriter{w}, decodes: l == store.Packed,
					get: func(key string) bool { _, ok := r.Get(object.Key(key)); return ok }, iterate: func() {
						for range r.Snapshot().Objects() {
						}
					}}, nil
			}))
		}
	}
	for _, cost := range growthCosts {
		for _, l := range layouts {
			for _, n := range growthSizes {
				c.Rows = append(c.Rows, harness.Row{Name: cost.name, Layout: l.String(), Unit: cost.unit, Sheltered: true, N: n,
					Ours: harness.At(l.String(), n), Peer: harness.At(peer, n), Figure: cost.figure})
			}
			c.Rows = append(c.Rows, harness.Row{Name: cost.name + ", with the size", Layout: l.String(),
				Ours: l.String(), Peer: peer, Figure: cost.figure, Growth: growthSizes,
				Sheltered: true, Goal: harness.AtMost(cost.most)})
		}
	}
	return c
}

// grown is a store of some size, of either side.
type grown struct {
	writer
	get     func(key string) bool
	iterate func()
	decodes bool // a read decodes the object, which is slow
}

func growthVariant(name string, n int, open func([]*corev1.Pod) (grown, error)) harness.Variant {
	return harness.Variant{Name: harness.At(name, n),
		Run: func(_ context.Context, p *harness.Params) (harness.Figures, error) {
			n := p.Size(n, n/50)
			set := testpods.New(feed.Seed, testpods.DefaultTemplates)
			before := measure.LiveHeap()
			g, err := open(podsOf(set, n))
			if err != nil {
				return nil, err
			}
			f := harness.Figures{"heap": (measure.LiveHeap() - before) / (1 << 20)}

			keys, some := drawnKeys(set, n), drawnPods(set, n, p.Size(growthSample, 500))
			if g.decodes {
				f["iterate"], f["get"] = float64(measure.Work(g.iterate))/1000, getEach(keys[:len(some)], g.get)
			} else {
				maps.Copy(f, thrice(func() harness.Figures {
					return harness.Figures{"get": getEach(keys, g.get), "iterate": measure.PerOp(1, readFor, g.iterate) / 1000}
				}))
			}
			changed := changes(set, some, p.Size(growthSample, 500))
			runtime.GC()
			update := measure.Work(func() {
				for i := 0; i < len(changed) && err == nil; i++ {
					err = g.update(changed[i])
				}
			})
			f["update"] = float64(update) / float64(len(changed))
			return f, err
		}}
}

// order returns the numbers below n in an order that no cache can predict.
func order(n int) []int { return rand.New(rand.NewPCG(feed.Seed, 2)).Perm(n) }

// drawnKeys returns the keys of the first n pods of a set in that order.
func drawnKeys(set *testpods.Set, n int) []string {
	keys := make([]string, n)
	for i, at := range order(n) {
		keys[i] = set.Key(at)
	}
	return keys
}

// drawnPods returns some of the first n pods of a set, the first ones in that order.
func drawnPods(set *testpods.Set, n, some int) []*corev1.Pod {
	pods := make([]*corev1.Pod, min(n, some))
	at := order(n)
	parallel(len(pods), func(i int) { pods[i] = set.Pod(at[i]) })
	return pods
}
