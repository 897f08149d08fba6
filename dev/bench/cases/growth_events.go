package cases

import (
	"context"
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/dev/bench/feed"
	"github.com/mirador-k8s/mirador/dev/bench/harness"
	"github.com/mirador-k8s/mirador/dev/testpods"
	"github.com/mirador-k8s/mirador/store"
)

// manyTemplates is more templates than any cache of recent ones holds.
const manyTemplates = 10_000

// growthOfEvents measures the cost of an event to ten handlers with more and more objects in the store, and with ten
// thousand templates whose pods change in random order.
func growthOfEvents() harness.Case {
	const handlers = 10
	c := harness.Case{Name: "growth-events", Repeat: 1}
	measured := func(s side, n, templates int) func(context.Context, *harness.Params) (harness.Figures, error) {
		return func(ctx context.Context, p *harness.Params) (harness.Figures, error) {
			templates, n := min(templates, p.Size(templates, 500)), p.Size(n, n/50)
			set := testpods.New(feed.Seed, templates)
			pods := podsOf(set, n)
			events := p.Size(10_000, 500)
			if s.layout == store.Packed.String() {
				events /= 10
			}
			return saturate(ctx, s, handlers, pods, inRandomOrder(set, pods, events))
		}
	}
	for _, s := range sides() {
		if apiOf(s) == compat && s.layout != store.Live.String() {
			continue // the layouts grow alike through both APIs
		}
		for _, n := range growthSizes {
			c.Variants = append(c.Variants,
				harness.Variant{Name: harness.At(s.name, n), Run: measured(s, n, testpods.DefaultTemplates)})
			if s.name != peer {
				c.Rows = append(c.Rows, harness.Row{Name: "growth: cost of an event, 10 handlers, " + apiOf(s),
					Layout: s.layout, Unit: "ns", N: n,
					Ours: harness.At(s.name, n), Peer: harness.At(peer, n), Figure: "ns"})
			}
		}
		many := s.name + " with many templates"
		c.Variants = append(c.Variants, harness.Variant{Name: many, Run: measured(s, 20_000, manyTemplates)})
		if s.name != peer {
			c.Rows = append(c.Rows,
				harness.Row{Name: "growth: cost of an event, 10 handlers, " + apiOf(s) + ", with the size", Layout: s.layout,
					Ours: s.name, Peer: peer, Figure: "ns", Growth: growthSizes, Goal: harness.AtMost(notWithTheNumber)},
				harness.Row{Name: fmt.Sprintf("cost of an event, 10 handlers, 10,000 templates in random order, %s", apiOf(s)),
					Layout: s.layout, Unit: "ns",
					Ours: many, Peer: peer + " with many templates", Figure: "ns"})
		}
	}
	return c
}

// inRandomOrder returns n changes of pods drawn at random.
func inRandomOrder(set *testpods.Set, pods []*corev1.Pod, n int) []*corev1.Pod {
	r := rand.New(rand.NewPCG(feed.Seed, 1))
	all := make([]*corev1.Pod, n)
	for i, at := range r.Perm(max(n, len(pods)))[:n] {
		all[i] = pods[at%len(pods)]
	}
	parallel(n, func(i int) { all[i] = set.Changed(all[i], i) })
	return all
}
