package cases

import (
	"context"
	"runtime"

	corev1 "k8s.io/api/core/v1"
	informers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/mirador-k8s/mirador/dev/bench/feed"
	"github.com/mirador-k8s/mirador/dev/bench/harness"
	"github.com/mirador-k8s/mirador/dev/bench/measure"
	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/source/kube"
	"github.com/mirador-k8s/mirador/store"
)

// idleInformers measures the cost of idle informers: no objects, one handler and an open watch each, over one client.
func idleInformers() harness.Case {
	const informersEach = 1000
	variant := func(name string, open func(ctx context.Context, cfg *rest.Config, n int) ([]any, error)) harness.Variant {
		return harness.Variant{Name: name, Run: func(ctx context.Context, p *harness.Params) (harness.Figures, error) {
			n := p.Size(informersEach, 50)
			cfg := feed.FromFiles(p.Scratch, 0).Config()
			goroutines, heap := runtime.NumGoroutine(), measure.LiveHeap()
			held, err := open(ctx, cfg, n)
			if err != nil {
				return nil, err
			}
			f := harness.Figures{
				"heap":       (measure.LiveHeap() - heap) / float64(n) / 1024,
				"goroutines": float64(runtime.NumGoroutine()-goroutines) / float64(n),
			}
			runtime.KeepAlive(held)
			return f, nil
		}}
	}
	c := harness.Case{
		Name: "idle-informers", Repeat: 1,
		Prepare: func(_ context.Context, p *harness.Params) (func(), error) {
			return nil, feed.WriteFile(p.Scratch, feed.Protobuf, 0)
		},
		Variants: []harness.Variant{variant(peer, idlePeer)},
	}
	for _, l := range layouts {
		c.Variants = append(c.Variants,
			variant(l.String(), func(ctx context.Context, cfg *rest.Config, n int) ([]any, error) {
				return idleOurs(ctx, cfg, n, l)
			}))
		goal := harness.Goal{}
		if l == store.Live {
			goal = harness.Ratio(0.3)
		}
		c.Rows = append(c.Rows,
			harness.Row{Name: "1,000 idle informers: goroutines each", Layout: l.String(), Ours: l.String(), Peer: peer,
				Figure: "goroutines", Goal: goal},
			harness.Row{Name: "1,000 idle informers: heap each", Layout: l.String(), Unit: "KiB", Ours: l.String(), Peer: peer,
				Figure: "heap", Goal: goal})
	}
	return c
}

func idlePeer(ctx context.Context, cfg *rest.Config, n int) (held []any, err error) {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	for range n {
		inf := informers.NewPodInformer(client, "", 0, indexers())
		if _, err := inf.AddEventHandler(clientgo.ResourceEventHandlerFuncs{}); err != nil {
			return nil, err
		}
		if _, err := runShared(ctx, inf); err != nil {
			return nil, err
		}
		held = append(held, inf)
	}
	return held, nil
}

func idleOurs(ctx context.Context, cfg *rest.Config, n int, l store.Layout) (held []any, err error) {
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	for range n {
		src, err := kube.Typed[*corev1.Pod](cfg, &kube.Options{HTTPClient: client})
		if err != nil {
			return nil, err
		}
		inf, err := typedInformer(src, l)
		if err != nil {
			return nil, err
		}
		if _, err := inf.Subscribe(informer.Funcs[*corev1.Pod]{}, nil); err != nil {
			return nil, err
		}
		r, err := run(ctx, inf)
		if err != nil {
			return nil, err
		}
		held = append(held, r)
	}
	return held, nil
}
