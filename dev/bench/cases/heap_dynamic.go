package cases

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/dev/bench/feed"
	"github.com/mirador-k8s/mirador/dev/bench/harness"
	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/source/kube"
	"github.com/mirador-k8s/mirador/store"
)

// dynamicPods is smaller than the number of typed pods: client-go needs much more memory for each.
func dynamicPods(p *harness.Params) int { return p.Size(15_000, 1_000) }

var podsResource = corev1.SchemeGroupVersion.WithResource("pods")

// heapDynamic measures the heap of a dynamic informer of the same pods: ours with unstructured objects in each layout,
// and with raw JSON, packed.
func heapDynamic() harness.Case {
	variant := func(name string, open func(ctx context.Context, cfg *rest.Config) (any, error),
		count func(any) int) harness.Variant {
		return harness.Variant{Name: name, Run: func(ctx context.Context, p *harness.Params) (harness.Figures, error) {
			n := dynamicPods(p)
			cfg := feed.FromFiles(p.Scratch, n).Config()
			cfg.ContentConfig = rest.ContentConfig{}
			return heapOf(n, func() (any, error) { return open(ctx, cfg) }, count)
		}}
	}
	c := harness.Case{
		Name: "heap-dynamic", Repeat: 1,
		Prepare: func(_ context.Context, p *harness.Params) (func(), error) {
			return nil, feed.WriteFile(p.Scratch, feed.JSON, dynamicPods(p))
		},
		Variants: []harness.Variant{variant(peer, func(ctx context.Context, cfg *rest.Config) (any, error) {
			inf, err := peerDynamic(cfg)
			if err != nil {
				return nil, err
			}
			_, err = runShared(ctx, inf)
			return inf, err
		}, func(inf any) int { return len(inf.(sharedStore).GetStore().ListKeys()) })},
	}
	for _, l := range layouts {
		c.Variants = append(c.Variants, variant(l.String(), func(ctx context.Context, cfg *rest.Config) (any, error) {
			src, err := kube.Dynamic(cfg, podsResource, nil)
			if err != nil {
				return nil, err
			}
			inf, err := dynamicInformer(src, l)
			if err != nil {
				return nil, err
			}
			return run(ctx, inf)
		}, func(inf any) int { return inf.(*running[*unstructured.Unstructured]).Reader().Len() }))
		c.Rows = append(c.Rows, harness.Row{Name: "heap per object, dynamic", Layout: l.String(), Unit: "B",
			Ours: l.String(), Peer: peer, Figure: "heap"})
	}
	c.Variants = append(c.Variants, variant("raw packed", func(ctx context.Context, cfg *rest.Config) (any, error) {
		src, err := kube.Raw(cfg, podsResource, nil)
		if err != nil {
			return nil, err
		}
		inf, err := rawInformer(src, store.Packed)
		if err != nil {
			return nil, err
		}
		return run(ctx, inf)
	}, func(inf any) int { return inf.(*running[*kube.RawObject]).Reader().Len() }))
	c.Rows = append(c.Rows, harness.Row{Name: "heap per object, dynamic", Layout: "raw packed", Unit: "B",
		Ours: "raw packed", Peer: peer, Figure: "heap", Goal: harness.Ratio(0.015)})
	return c
}

// rawInformer returns our informer of pods as JSON with two indexes, whose values are read from the bytes.
func rawInformer(src *kube.Source[*kube.RawObject], l store.Layout) (*informer.Informer[*kube.RawObject], error) {
	field := func(name string) store.IndexFunc[*kube.RawObject] {
		return func(r *kube.RawObject) ([]string, error) { return []string{rawField(r.Bytes, name)}, nil }
	}
	return informer.New(src, &informer.Options[*kube.RawObject]{Layout: l,
		Indexes: informer.Indexes[*kube.RawObject]{byNamespace: field("namespace"), byApp: field("app")}})
}
