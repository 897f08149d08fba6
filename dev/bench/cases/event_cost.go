package cases

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/mirador-k8s/mirador/dev/bench/feed"
	"github.com/mirador-k8s/mirador/dev/bench/harness"
	"github.com/mirador-k8s/mirador/dev/bench/measure"
	"github.com/mirador-k8s/mirador/store"
)

// handlerCounts are the numbers of handlers, with the goals for compat.
var handlerCounts = []struct {
	n    int
	goal float64
}{{1, 0.2}, {10, 0.07}, {50, 0.03}}

// eventCost measures the cost of an update from the watch to the last handler, at saturation: events are sent as fast
// as the informer takes them, and the clock stops when every handler has received the last. The objects are made
// beforehand.
func eventCost() harness.Case {
	c := harness.Case{Name: "event-cost"}
	for _, s := range sides() {
		c.Variants = append(c.Variants,
			harness.Variant{Name: s.name, Run: func(ctx context.Context, p *harness.Params) (harness.Figures, error) {
				pods, changed := eventObjects(p)
				given := func() (_, _ []*corev1.Pod) { return pods, changed }
				measure.Settle(p.Size(256<<20, 16<<20))
				figures := harness.Figures{}
				// The shared and packed layouts are many times slower than the live one, so they get fewer events and one round.
				rounds := 3
				switch s.layout {
				case store.Shared.String():
					rounds, changed = 1, changed[:len(changed)/10]
				case store.Packed.String():
					rounds, changed = 1, changed[:len(changed)/20]
				}
				if rounds == 1 { // these layouts depend on the object's content: each run gets its own copies
					given = func() (_, _ []*corev1.Pod) { return copies(pods), copies(changed) }
				}
				for _, h := range handlerCounts {
					var runs []harness.Figures
					for range rounds {
						pods, changed := given()
						f, err := saturate(ctx, s, h.n, pods, changed)
						if err != nil {
							return nil, err
						}
						runs = append(runs, f)
					}
					for name, value := range harness.Medians(runs) {
						figures[fmt.Sprintf("%s %d", name, h.n)] = value
					}
				}
				return figures, nil
			}})
	}
	c.Variants = append(c.Variants,
		harness.Variant{Name: "driver", Run: func(_ context.Context, p *harness.Params) (harness.Figures, error) {
			_, changed := eventObjects(p)
			return harness.Figures{"ns": driverShare(changed)}, nil
		}})
	for _, h := range handlerCounts {
		c.Rows = append(c.Rows, eventRows(h.n, h.goal)...)
	}
	c.Rows = append(c.Rows, harness.Row{Name: "the driver's own share of an event", Unit: "ns",
		Ours: "driver", Figure: "ns"})
	return c
}

func eventRows(handlers int, goal float64) (rows []harness.Row) {
	ns := fmt.Sprintf("ns %d", handlers)
	for _, api := range []string{compat, typed} {
		for _, l := range layouts {
			row := harness.Row{Name: fmt.Sprintf("cost of an event, %s, %s", to(handlers), api), Layout: l.String(), Unit: "ns",
				Ours: api + " " + l.String(), Peer: peer, Figure: ns}
			if api == compat && l == store.Live {
				row.Goal = harness.Ratio(goal)
			}
			// Whether the stages run in parallel varies from second to second and changes the elapsed time, but not the CPU
			// time.
			work := row
			work.Name, work.Figure, work.Goal = row.Name+", CPU", fmt.Sprintf("cpu %d", handlers), harness.Goal{}
			work.Sheltered = true
			rows = append(rows, row, work)
		}
	}
	for _, l := range layouts {
		rows = append(rows,
			harness.Row{Name: fmt.Sprintf("cost of an event, %s, typed against compat (in place of client-go)", to(handlers)),
				Layout: l.String(),
				Unit:   "ns", Ours: typed + " " + l.String(), Peer: compat + " " + l.String(), Figure: ns, Goal: harness.Ratio(1)})
	}
	return rows
}

func to(handlers int) string {
	if handlers == 1 {
		return "1 handler"
	}
	return fmt.Sprintf("%d handlers", handlers)
}

// eventObjects returns pods and changes of them. A change shares everything below its first level with the pod, so
// that there can be many: the live layout and client-go do not depend on an object's content.
func eventObjects(p *harness.Params) (pods, changed []*corev1.Pod) {
	pods, _ = realPods(p.Size(10_000, 500))
	changed = make([]*corev1.Pod, p.Size(100_000, 1_500))
	for i := range changed {
		next := *pods[i%len(pods)]
		next.ResourceVersion = strconv.Itoa(firstChange + i)
		changed[i] = &next
	}
	return pods, changed
}

// saturate sends all changes and waits until all handlers have received the last.
func saturate(ctx context.Context, s side, handlers int, pods, changed []*corev1.Pod) (harness.Figures, error) {
	var seen sync.WaitGroup
	counts := make([]struct {
		n int
		_ [56]byte // one cache line each
	}, handlers)
	count := make([]func(*corev1.Pod), handlers)
	for i := range count {
		seen.Add(1)
		count[i] = func(*corev1.Pod) {
			if counts[i].n++; counts[i].n == len(changed) {
				seen.Done()
			}
		}
	}
	run, err := s.start(ctx, pods, count...)
	if err != nil {
		return nil, err
	}
	defer run.stop()
	runtime.GC()
	// A collection would mostly scan objects made by the driver, so there is none while the clock runs, on either side.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	_, allocated := measure.Allocated()
	cpu, began := measure.CPU(), time.Now()
	for _, p := range changed {
		run.update(p)
	}
	seen.Wait()
	took, used := time.Since(began), measure.CPU()-cpu
	_, now := measure.Allocated()
	n := float64(len(changed))
	return harness.Figures{"ns": float64(took) / n, "cpu": float64(used) / n, "allocations": (now - allocated) / n}, nil
}

// driverShare returns the cost of sending an event without an informer.
func driverShare(changed []*corev1.Pod) float64 {
	events := make(chan watch.Event, feed.Buffered)
	done := make(chan struct{})
	began := time.Now()
	go func() {
		defer close(done)
		for range changed {
			<-events
		}
	}()
	for _, p := range changed {
		events <- watch.Event{Type: watch.Modified, Object: p}
	}
	<-done
	return float64(time.Since(began)) / float64(len(changed))
}
