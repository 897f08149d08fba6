package cases

import (
	"context"
	"maps"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/bench/feed"
	"github.com/mirador-k8s/mirador/bench/harness"
	"github.com/mirador-k8s/mirador/bench/measure"
	"github.com/mirador-k8s/mirador/internal/testpods"
	"github.com/mirador-k8s/mirador/object"
)

// growthSizes are the numbers of objects over which costs are followed.
var growthSizes = []int{1_000, 10_000, 100_000}

// notMoreThanLinear leaves the noise of three points its room; 1 is linear.
const notMoreThanLinear = 1.1

// growthCosts are what is followed in stores, with the unit of the whole.
var growthCosts = []struct{ figure, name, unit string }{
	{"heap", "growth: heap of a store", "MiB"},
	{"get", "growth: Get by key", "ns"},
	{"update", "growth: update", "ns"},
	{"iterate", "growth: the whole store, iterated", "us"},
}

// growth measures how the costs of a store grow with its size.
func growth() harness.Case {
	c := harness.Case{Name: "growth", Repeat: 1}
	for _, n := range growthSizes {
		c.Variants = append(c.Variants, growthVariant(peer, n, func(pods []*corev1.Pod) (grown, error) {
			in, err := peerStore(pods)
			return grown{indexWriter{in}, func(key string) bool { _, ok, _ := in.GetByKey(key); return ok }, func() { iterateList(in) }}, err
		}))
		for _, l := range layouts {
			c.Variants = append(c.Variants, growthVariant(l.String(), n, func(pods []*corev1.Pod) (grown, error) {
				w, err := ourStore(l, 0, pods)
				if err != nil {
					return grown{}, err
				}
				r := w.Reader()
				return grown{ownWriter{w}, func(key string) bool { _, ok := r.Get(object.Key(key)); return ok }, func() {
					for range r.Snapshot().Entries() {
					}
				}}, nil
			}))
		}
	}
	for _, cost := range growthCosts {
		for _, l := range layouts {
			for _, n := range growthSizes {
				c.Rows = append(c.Rows, harness.Row{Name: cost.name, Layout: l.String(), Unit: cost.unit, N: n,
					Ours: harness.At(l.String(), n), Peer: harness.At(peer, n), Figure: cost.figure})
			}
			c.Rows = append(c.Rows, harness.Row{Name: cost.name + ", with the size", Layout: l.String(),
				Ours: l.String(), Peer: peer, Figure: cost.figure, Growth: growthSizes, Goal: harness.AtMost(notMoreThanLinear)})
		}
	}
	return c
}

// grown is a store of some size, of whichever side.
type grown struct {
	writer
	get     func(key string) bool
	iterate func()
}

func growthVariant(name string, n int, open func([]*corev1.Pod) (grown, error)) harness.Variant {
	return harness.Variant{Name: harness.At(name, n), Run: func(_ context.Context, p *harness.Params) (harness.Figures, error) {
		n := p.Size(n, n/50)
		set := testpods.New(feed.Seed, testpods.DefaultTemplates)
		before := measure.LiveHeap()
		g, err := open(podsOf(set, n))
		if err != nil {
			return nil, err
		}
		f := harness.Figures{"heap": (measure.LiveHeap() - before) / (1 << 20)}

		some := podsOf(set, min(n, 2_000))
		keys := keysOf(some)
		maps.Copy(f, thrice(func() harness.Figures {
			return harness.Figures{"get": getEach(keys, g.get), "iterate": measure.PerOp(1, readFor, g.iterate) / 1000}
		}))
		changed := changes(set, some, p.Size(6_000, 500))
		runtime.GC()
		began := time.Now()
		for _, p := range changed {
			if err := g.update(p); err != nil {
				return nil, err
			}
		}
		f["update"] = float64(time.Since(began)) / float64(len(changed))
		return f, nil
	}}
}
