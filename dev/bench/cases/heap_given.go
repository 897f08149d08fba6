package cases

import (
	"context"

	clientgo "k8s.io/client-go/tools/cache"

	"github.com/mirador-k8s/mirador/dev/bench/feed"
	"github.com/mirador-k8s/mirador/dev/bench/harness"
	"github.com/mirador-k8s/mirador/store"
)

// heapGiven measures the heap of an informer whose objects were decoded by the caller's own ListWatch: the informer
// must not change those objects.
func heapGiven() harness.Case {
	variant := func(name string, make func(lw *feed.ListWatch) clientgo.SharedIndexInformer) harness.Variant {
		return harness.Variant{Name: name, Run: func(ctx context.Context, p *harness.Params) (harness.Figures, error) {
			n := heapPods(p)
			return heapOf(n, func() (any, error) {
				pods, _ := realPods(n)
				lw := feed.NewListWatch(pods, latest)
				inf := make(lw)
				_, err := runShared(ctx, inf)
				lw.Forget()
				return inf, err
			}, func(inf any) int { return len(inf.(sharedStore).GetStore().ListKeys()) })
		}}
	}
	c := harness.Case{Name: "heap-given", Repeat: 1, Variants: []harness.Variant{variant(peer, peerInformer)}}
	for _, l := range layouts {
		c.Variants = append(c.Variants,
			variant(l.String(), func(lw *feed.ListWatch) clientgo.SharedIndexInformer { return compatInformer(lw, l) }))
		row := harness.Row{Name: "heap per pod, objects given to compat", Layout: l.String(), Unit: "B", Ours: l.String(),
			Peer: peer, Figure: "heap"}
		if l == store.Live {
			row.Goal = harness.Ratio(1)
		}
		c.Rows = append(c.Rows, row)
	}
	return c
}
