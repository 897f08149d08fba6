package cases

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mirador-k8s/mirador/dev/bench/cluster"
	"github.com/mirador-k8s/mirador/dev/bench/harness"
	"github.com/mirador-k8s/mirador/dev/bench/measure"
	"github.com/mirador-k8s/mirador/source/kube"
)

// coldPods returns how many pods the real server has.
func coldPods(p *harness.Params) int {
	if p.Pods > 0 {
		return p.Pods
	}
	return p.Size(50_000, 2_000)
}

// coldSync measures a client that starts and reads all pods of a real API server, both sides with protobuf and a watch
// with sendInitialEvents.
func coldSync() harness.Case {
	c := harness.Case{Name: "cold-sync", Repeat: 2, Prepare: prepareCluster}
	variant := func(name string, sync func(ctx context.Context, cfg *rest.Config) (held any, n func() int, err error)) {
		c.Variants = append(c.Variants,
			harness.Variant{Name: name, Run: func(ctx context.Context, p *harness.Params) (harness.Figures, error) {
				cfg, err := clientConfig(p)
				if err != nil {
					return nil, err
				}
				cpu, began := measure.CPU(), time.Now()
				held, count, err := sync(ctx, cfg)
				if err != nil {
					return nil, err
				}
				took, used := time.Since(began), measure.CPU()-cpu
				f := harness.Figures{"wall": took.Seconds(), "cpu": used.Seconds(), "rss": measure.PeakRSS() / (1 << 20)}
				if have := count(); have != coldPods(p) {
					return nil, fmt.Errorf("the cluster has %d pods, want %d", have, coldPods(p))
				}
				runtime.KeepAlive(held)
				return f, nil
			}})
	}
	variant(peer, func(ctx context.Context, cfg *rest.Config) (any, func() int, error) {
		inf, err := peerTyped(cfg)
		if err != nil {
			return nil, nil, err
		}
		_, err = runShared(ctx, inf)
		return inf, func() int { return len(inf.GetStore().ListKeys()) }, err
	})
	for _, l := range layouts {
		variant(l.String(), func(ctx context.Context, cfg *rest.Config) (any, func() int, error) {
			src, err := kube.Typed[*corev1.Pod](cfg, nil)
			if err != nil {
				return nil, nil, err
			}
			inf, err := typedInformer(src, l)
			if err != nil {
				return nil, nil, err
			}
			r, err := run(ctx, inf)
			return r, func() int { return inf.Reader().Len() }, err
		})
		for _, row := range []harness.Row{
			{Name: "wall time", Figure: "wall", Unit: "s", Goal: harness.Ratio(0.9)},
			{Name: "CPU of the client", Figure: "cpu", Unit: "s", Sheltered: true, Goal: harness.Ratio(0.8)},
			{Name: "peak memory", Figure: "rss", Unit: "MiB", Goal: harness.Ratio(0.6)},
		} {
			row.Name = "cold sync of 50k pods from the real API server, " + row.Name
			row.Layout, row.Ours, row.Peer = l.String(), l.String(), peer
			c.Rows = append(c.Rows, row)
		}
	}
	return c
}

func prepareCluster(ctx context.Context, p *harness.Params) (func(), error) {
	c, err := cluster.Start(ctx, p.Scratch)
	if err != nil {
		return nil, err
	}
	p.Cluster = c.Kubeconfig
	if err := c.Fill(ctx, coldPods(p)); err != nil {
		return c.Stop, err
	}
	return c.Stop, readOnce(ctx, p)
}

// readOnce reads everything from the server, so that no trial is the first one to do so.
func readOnce(ctx context.Context, p *harness.Params) error {
	cfg, err := clientConfig(p)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	all, err := client.CoreV1().RESTClient().Get().Resource("pods").Stream(ctx)
	if err != nil {
		return fmt.Errorf("read all pods once: %w", err)
	}
	defer all.Close()
	if _, err := io.Copy(io.Discard, all); err != nil {
		return fmt.Errorf("read all pods once: %w", err)
	}
	return nil
}

// clientConfig returns the config of a client of the real server, with protobuf and without a rate limit.
func clientConfig(p *harness.Params) (*rest.Config, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", p.Cluster)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	cfg.QPS = -1
	cfg.ContentType = "application/vnd.kubernetes.protobuf"
	cfg.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return cfg, nil
}
