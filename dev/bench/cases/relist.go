package cases

import (
	"context"
	"runtime"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/mirador-k8s/mirador/dev/bench/harness"
	"github.com/mirador-k8s/mirador/dev/bench/measure"
	"github.com/mirador-k8s/mirador/store"
)

// relist measures the cost of a relist after the watch has expired, when nothing has changed. The listed objects exist
// already: nothing is decoded.
func relist() harness.Case {
	c := harness.Case{Name: "relist"}
	for _, s := range sides() {
		c.Variants = append(c.Variants,
			harness.Variant{Name: s.name, Run: func(ctx context.Context, p *harness.Params) (harness.Figures, error) {
				return measureRelist(ctx, s, smallPods(p.Size(100_000, 5_000)))
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

// measureRelist lets the watch expire and measures until an event of the next watch has been delivered.
func measureRelist(ctx context.Context, s side, pods []*corev1.Pod) (harness.Figures, error) {
	// When this last event arrives, everything before it has been delivered.
	mark := smallChange(pods[0], 0)
	marked := make(chan struct{}, 1)
	run, err := s.start(ctx, pods, func(p *corev1.Pod) {
		if p.ResourceVersion == mark.ResourceVersion {
			marked <- struct{}{}
		}
	})
	if err != nil {
		return nil, err
	}
	defer run.stop()
	runtime.GC()
	runtime.GC()
	bytes, objects := measure.Allocated()
	cpu := measure.CPU()
	expired := apierrors.NewResourceExpired("the watch has expired").Status()
	run.events <- watch.Event{Type: watch.Error, Object: &expired}
	if err := run.nextWatch(ctx); err != nil {
		return nil, err
	}
	run.update(mark)
	<-marked
	used := measure.CPU() - cpu
	bytesNow, objectsNow := measure.Allocated()
	return harness.Figures{
		"cpu": used.Seconds() * 1000, "bytes": (bytesNow - bytes) / (1 << 20), "objects": objectsNow - objects,
	}, nil
}
