package cases

import (
	"context"
	"fmt"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/dev/bench/feed"
	"github.com/mirador-k8s/mirador/dev/bench/harness"
	"github.com/mirador-k8s/mirador/dev/testpods"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source/kube"
	"github.com/mirador-k8s/mirador/store"
)

// million measures packed informers of up to a million pods, each in its own process. client-go would need too much
// memory for the last.
func million() harness.Case {
	const pods = 1_000_000
	name := store.Packed.String()
	all := harness.At(name, pods)
	c := harness.Case{Name: "million", Repeat: 1, Rows: []harness.Row{
		{Name: "a million pods in one process: heap", Layout: name, Unit: "MiB", Ours: all, Figure: "total",
			Goal: harness.AtMost(768)},
		{Name: "a million pods in one process: heap per pod", Layout: name, Unit: "B", Ours: all, Figure: "heap"},
		{Name: "a million pods in one process: peak RSS", Layout: name, Unit: "MiB", Ours: all, Figure: "rss"},
	}}
	// The sizes start at ten thousand: of a thousand pods the read cache would hold a quarter.
	sizes := []int{10_000, 100_000, pods}
	for _, n := range sizes {
		c.Variants = append(c.Variants,
			harness.Variant{Name: harness.At(name, n),
				Run: func(ctx context.Context, p *harness.Params) (harness.Figures, error) {
					return packedInformer(ctx, p, p.Size(n, n/200))
				}})
	}
	for _, cost := range []struct {
		figure, name, unit string
		most               float64
	}{
		{"total", "growth: heap of an informer", "MiB", notMoreThanLinear},
		{"get", "growth: Get by key, of an informer", "ns", notWithTheNumber},
		{"update", "growth: update of an informer, from the wire", "ns", notWithTheNumber},
	} {
		sheltered := cost.figure != "update" // an update runs on the informer's own goroutines
		for _, n := range sizes {
			c.Rows = append(c.Rows, harness.Row{Name: cost.name, Layout: name, Unit: cost.unit, Sheltered: sheltered, N: n,
				Ours: harness.At(name, n), Figure: cost.figure})
		}
		c.Rows = append(c.Rows, harness.Row{Name: cost.name + ", with the size", Layout: name, Ours: name,
			Figure: cost.figure,
			Growth: sizes, Sheltered: sheltered, Goal: harness.AtMost(cost.most)})
	}
	return c
}

// packedInformer measures the memory of an informer of n pods, and the cost of reading and updating one of them.
func packedInformer(ctx context.Context, p *harness.Params, n int) (harness.Figures, error) {
	after := make(chan []byte)
	began := time.Now()
	var inf *running[*corev1.Pod]
	f, err := heapOf(n, func() (any, error) {
		server := feed.Generated(n, testpods.DefaultTemplates)
		server.After = after
		src, err := kube.Typed[*corev1.Pod](server.Config(), nil)
		if err != nil {
			return nil, err
		}
		opened, err := typedInformer(src, store.Packed)
		if err != nil {
			return nil, err
		}
		inf, err = run(ctx, opened)
		return inf, err
	}, func(any) int { return inf.Reader().Len() })
	if err != nil {
		return nil, err
	}
	f["seconds"] = time.Since(began).Seconds()

	set, some := testpods.New(feed.Seed, testpods.DefaultTemplates), p.Size(growthSample, 500)
	r := inf.Reader()
	f["get"] = getEach(drawnKeys(set, n)[:min(n, some)],
		func(key string) bool { _, ok := r.Get(object.Key(key)); return ok })

	changed := changes(set, drawnPods(set, n, some), some)
	var wire []byte
	for _, pod := range changed {
		if wire, err = feed.AppendChange(wire, feed.Protobuf, pod); err != nil {
			return nil, err
		}
	}
	last := object.Version(changed[some-1].ResourceVersion)
	if v := r.Version(); !v.Before(last) {
		return nil, fmt.Errorf("the store has version %s, want %s after the last change", v, last)
	}
	runtime.GC()
	began = time.Now()
	select {
	case after <- wire:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := inf.WaitVersion(ctx, last); err != nil {
		return nil, err
	}
	f["update"] = float64(time.Since(began)) / float64(some)
	return f, nil
}
