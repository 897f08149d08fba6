package cases

import (
	"context"
	"runtime"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/mirador-k8s/mirador/dev/bench/feed"
	"github.com/mirador-k8s/mirador/dev/bench/harness"
	"github.com/mirador-k8s/mirador/dev/bench/measure"
	"github.com/mirador-k8s/mirador/store"
)

// relist measures what it takes to list again after the watch has expired, when
// nothing has changed. The list is there already: nothing is decoded.
func relist() harness.Case {
	c := harness.Case{Name: "relist"}
	for _, s := range sides() {
		c.Variants = append(c.Variants,
			harness.Variant{Name: s.name, Run: func(ctx context.Context, p *harness.Params) (harness.Figures, error) {
				return listAgain(ctx, s, smallPods(p.Size(100_000, 5_000)))
			}})
		if s.name == peer {
			continue
		}
		for _, row := range []harness.Row{{Name: "CPU", Figure: "cpu", Unit: "ms", Sheltered: true},
			{Name: "bytes allocated", Figure: "bytes", Unit: "MiB"}, {Name: "allocations", Figure: "objects"}} {
			row.Name, row.Layout = "a relist in which nothing changed, 100k objects, "+row.Name+", "+apiOf(s), s.layout
			row.Ours, row.Peer = s.name, peer
			if s.layout == store.Live.String() {
				row.Goal = harness.Ratio(0.3)
			}
			c.Rows = append(c.Rows, row)
		}
	}
	return c
}

func listAgain(ctx context.Context, s side, pods []*corev1.Pod) (harness.Figures, error) {
	lw := feed.NewListWatch(pods, latest)
	t, err := s.open(lw)
	if err != nil {
		return nil, err
	}
	// The last event tells that everything before it was delivered.
	mark := smallChange(pods[0], 0)
	marked := make(chan struct{}, 1)
	if err := t.handle(func(p *corev1.Pod) {
		if p.ResourceVersion == mark.ResourceVersion {
			marked <- struct{}{}
		}
	}); err != nil {
		return nil, err
	}
	stop, err := t.run(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	events, err := lw.Events(ctx)
	if err != nil {
		return nil, err
	}
	runtime.GC()
	runtime.GC()
	bytes, objects := measure.Allocated()
	cpu := measure.CPU()
	expired := apierrors.NewResourceExpired("the watch has expired").Status()
	events <- watch.Event{Type: watch.Error, Object: &expired}
	if events, err = lw.Events(ctx); err != nil {
		return nil, err
	}
	events <- watch.Event{Type: watch.Modified, Object: mark}
	<-marked
	used := measure.CPU() - cpu
	bytesNow, objectsNow := measure.Allocated()
	return harness.Figures{
		"cpu": used.Seconds() * 1000, "bytes": (bytesNow - bytes) / (1 << 20), "objects": objectsNow - objects,
	}, nil
}
