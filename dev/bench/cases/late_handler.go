package cases

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/dev/bench/harness"
	"github.com/mirador-k8s/mirador/store"
)

// lateHandler measures the longest latency of an event to an existing handler while another handler joins and receives
// all objects.
func lateHandler() harness.Case {
	c := harness.Case{Name: "late-handler"}
	for _, s := range sides() {
		c.Variants = append(c.Variants,
			harness.Variant{Name: s.name, Run: func(ctx context.Context, p *harness.Params) (harness.Figures, error) {
				return joinLate(ctx, s, smallPods(p.Size(100_000, 5_000)), p.Size(1500, 300))
			}})
		if s.name == peer {
			continue
		}
		row := harness.Row{Name: "late handler joining 100k objects: longest stall of the others, " + apiOf(s),
			Layout: s.layout, Unit: "ms",
			Ours: s.name, Peer: peer, Figure: "stall"}
		if s.layout == store.Live.String() {
			row.Goal = harness.Ratio(0.05)
		}
		c.Rows = append(c.Rows, row,
			harness.Row{Name: "late handler joining 100k objects: until it has them all, " + apiOf(s),
				Layout: s.layout, Unit: "ms",
				Ours: s.name, Peer: peer, Figure: "join"})
	}
	return c
}

// smallChange returns a change of a small pod: only the version differs.
func smallChange(p *corev1.Pod, i int) *corev1.Pod {
	changed := p.DeepCopy()
	changed.ResourceVersion = strconv.Itoa(firstChange + i)
	return changed
}

// joinLate sends an event each millisecond. After a third of them the other handler joins; events continue until it
// has received every object.
func joinLate(ctx context.Context, s side, pods []*corev1.Pod, events int) (harness.Figures, error) {
	most := 20 * events
	began := time.Now()
	arrived := make([]time.Duration, most)
	var seen sync.WaitGroup
	run, err := s.start(ctx, pods, func(p *corev1.Pod) {
		arrived[number(p)] = time.Since(began)
		seen.Done()
	})
	if err != nil {
		return nil, err
	}
	defer run.stop()
	join := events / 3
	joined := make(chan error, 1)
	var given int
	var complete atomic.Int64 // when the handler that joined had everything
	sent := make([]time.Duration, 0, most)
	first := time.Since(began) + 20*time.Millisecond
	for i := 0; i < events || complete.Load() == 0; i++ {
		if i == most {
			return nil, fmt.Errorf("after %d events the handler that joined does not have all %d objects", i-join, len(pods))
		}
		p := smallChange(pods[i%len(pods)], i)
		time.Sleep(first + time.Duration(i)*time.Millisecond - time.Since(began))
		if i == join {
			go func() {
				joined <- run.join(func(*corev1.Pod) {
					if given++; given == len(pods) {
						complete.Store(int64(time.Since(began)))
					}
				})
			}()
		}
		seen.Add(1)
		sent = append(sent, time.Since(began))
		run.update(p)
	}
	seen.Wait()
	if err := <-joined; err != nil {
		return nil, err
	}
	return harness.Figures{
		"stall":  longest(sent[join:], arrived[join:]),
		"before": longest(sent[join/2:join], arrived[join/2:join]),
		"join":   float64(time.Duration(complete.Load())-sent[join]) / float64(time.Millisecond),
	}, nil
}

// longest returns the longest latency in milliseconds.
func longest(sent, arrived []time.Duration) float64 {
	var most time.Duration
	for i := range sent {
		most = max(most, arrived[i]-sent[i])
	}
	return float64(most) / float64(time.Millisecond)
}
