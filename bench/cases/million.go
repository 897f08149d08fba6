package cases

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/bench/feed"
	"github.com/mirador-k8s/mirador/bench/harness"
	"github.com/mirador-k8s/mirador/internal/testpods"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source/kube"
	"github.com/mirador-k8s/mirador/store"
)

// million measures a packed informer of a million pods in one process. client-go
// would need some 20 GB for them.
func million() harness.Case {
	const pods = 1_000_000
	name := store.Packed.String()
	return harness.Case{
		Name: "million", Repeat: 1,
		Variants: []harness.Variant{{Name: name, Run: func(ctx context.Context, p *harness.Params) (harness.Figures, error) {
			n := p.Size(pods, 5_000)
			began := time.Now()
			var inf *running[*corev1.Pod]
			f, err := heapOf(n, func() (any, error) {
				src, err := kube.Typed[*corev1.Pod](feed.Generated(n, testpods.DefaultTemplates).Config())
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
			r := inf.Reader()
			keys := drawnKeys(testpods.New(feed.Seed, testpods.DefaultTemplates), n)
			f["get"] = getEach(keys[:min(n, growthSample)], func(key string) bool { _, ok := r.Get(object.Key(key)); return ok })
			return f, nil
		}}},
		Rows: []harness.Row{
			{Name: "a million pods in one process: heap", Layout: name, Unit: "MiB", Ours: name, Figure: "total", Goal: harness.AtMost(768)},
			{Name: "a million pods in one process: heap per pod", Layout: name, Unit: "B", Ours: name, Figure: "heap"},
			{Name: "a million pods in one process: peak RSS", Layout: name, Unit: "MiB", Ours: name, Figure: "rss"},
			{Name: "growth: heap of a store", Layout: name, Unit: "MiB", N: pods, Ours: name, Figure: "total"},
			{Name: "growth: Get by key", Layout: name, Unit: "ns", N: pods, Ours: name, Figure: "get"},
		},
	}
}
