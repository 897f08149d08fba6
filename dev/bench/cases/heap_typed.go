package cases

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	corev1 "k8s.io/api/core/v1"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/mirador-k8s/mirador/dev/bench/feed"
	"github.com/mirador-k8s/mirador/dev/bench/harness"
	"github.com/mirador-k8s/mirador/dev/bench/measure"
	"github.com/mirador-k8s/mirador/source/kube"
	"github.com/mirador-k8s/mirador/store"
)

// fineGC makes the collector run whenever the heap has grown by a quarter.
const fineGC = 25

func heapPods(p *harness.Params) int { return p.Size(100_000, 2_000) }

// heapTyped measures the heap of an informer of pods and the peak of the live heap while it syncs. Both sides decode
// the same protobuf.
func heapTyped() harness.Case {
	c := harness.Case{
		Name: "heap", Repeat: 1,
		Prepare: func(_ context.Context, p *harness.Params) (func(), error) {
			return nil, feed.WriteFile(p.Scratch, feed.Protobuf, heapPods(p))
		},
		Variants: []harness.Variant{{Name: peer, Run: func(ctx context.Context, p *harness.Params) (harness.Figures, error) {
			return peakOf(heapPods(p), func() (any, error) {
				inf, err := peerTyped(feed.FromFiles(p.Scratch, heapPods(p)).Config())
				if err != nil {
					return nil, err
				}
				_, err = runShared(ctx, inf)
				return inf, err
			}, func(inf any) int { return len(inf.(sharedStore).GetStore().ListKeys()) })
		}}},
	}
	goals := map[store.Layout]float64{store.Live: 0.9, store.Shared: 0.4, store.Packed: 0.04}
	for _, l := range layouts {
		c.Variants = append(c.Variants,
			harness.Variant{Name: l.String(), Run: func(ctx context.Context, p *harness.Params) (harness.Figures, error) {
				return peakOf(heapPods(p), func() (any, error) {
					src, err := kube.Typed[*corev1.Pod](feed.FromFiles(p.Scratch, heapPods(p)).Config(), nil)
					if err != nil {
						return nil, err
					}
					inf, err := typedInformer(src, l)
					if err != nil {
						return nil, err
					}
					return run(ctx, inf)
				}, func(inf any) int { return inf.(*running[*corev1.Pod]).Reader().Len() })
			}})
		c.Rows = append(c.Rows, harness.Row{Name: "heap per pod, decoded here", Layout: l.String(), Unit: "B",
			Ours: l.String(), Peer: peer, Figure: "heap", Goal: harness.Ratio(goals[l])})
	}
	for _, l := range layouts {
		c.Rows = append(c.Rows,
			harness.Row{Name: "peak of the live heap in the initial sync over its final value", Layout: l.String(),
				Ours: l.String(), Peer: peer, Figure: "peak", Goal: harness.AtMost(1.3)},
			harness.Row{Name: "peak RSS in the initial sync", Layout: l.String(), Unit: "MiB", Ours: l.String(),
				Peer: peer, Figure: "rss"})
	}
	return c
}

// sharedStore is the part of client-go's informers with which heapOf counts objects.
type sharedStore interface{ GetStore() clientgo.Store }

// peakOf is heapOf with frequent collections, so that the peak of the live heap is seen.
func peakOf(n int, open func() (any, error), count func(any) int) (harness.Figures, error) {
	debug.SetGCPercent(fineGC)
	return heapOf(n, open, count)
}

// heapOf opens something that holds n objects and measures its memory.
func heapOf(n int, open func() (any, error), count func(any) int) (harness.Figures, error) {
	before := measure.LiveHeap()
	peak := measure.WatchPeak()
	held, err := open()
	highest := peak.Stop()
	if err != nil {
		return nil, err
	}
	rss := measure.PeakRSS()
	after := measure.LiveHeap()
	if have := count(held); have != n {
		return nil, fmt.Errorf("it holds %d objects, want %d", have, n)
	}
	runtime.KeepAlive(held)
	final := after - before
	return harness.Figures{
		"heap": final / float64(n), "total": final / (1 << 20),
		"peak": max(highest-before, final) / final, "rss": rss / (1 << 20),
	}, nil
}
