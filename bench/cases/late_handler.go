package cases

import (
	"context"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/mirador-k8s/mirador/bench/feed"
	"github.com/mirador-k8s/mirador/bench/harness"
	"github.com/mirador-k8s/mirador/store"
)

// lateHandler measures the longest time that an event takes to a handler which is
// there already, while another one joins and is given all objects.
func lateHandler() harness.Case {
	c := harness.Case{Name: "late-handler"}
	for _, s := range sides() {
		c.Variants = append(c.Variants, harness.Variant{Name: s.name, Run: func(ctx context.Context, p *harness.Params) (harness.Figures, error) {
			return joinLate(ctx, s, smallPods(p.Size(100_000, 5_000)), p.Size(1500, 300))
		}})
		if s.name == peer {
			continue
		}
		row := harness.Row{Name: "late handler joining 100k objects: longest stall of the others, " + apiOf(s), Layout: s.layout, Unit: "ms",
			Ours: s.name, Peer: peer, Figure: "stall"}
		if s.layout == store.Live.String() {
			row.Goal = harness.Ratio(0.05)
		}
		c.Rows = append(c.Rows, row)
	}
	return c
}

// smallChange is a change of a small pod, of its own version and otherwise the same.
func smallChange(p *corev1.Pod, i int) *corev1.Pod {
	changed := *p
	changed.ResourceVersion = strconv.Itoa(firstChange + i)
	return &changed
}

// joinLate sends an event each millisecond; after a third of them the other handler joins.
func joinLate(ctx context.Context, s side, pods []*corev1.Pod, events int) (harness.Figures, error) {
	lw := feed.NewListWatch(pods, latest)
	t, err := s.open(lw)
	if err != nil {
		return nil, err
	}
	changed := make([]*corev1.Pod, events)
	for i := range changed {
		changed[i] = smallChange(pods[i%len(pods)], i)
	}
	began := time.Now()
	arrived := make([]time.Duration, events)
	all := make(chan struct{})
	if err := t.handle(func(p *corev1.Pod) {
		i := number(p)
		if arrived[i] = time.Since(began); i == events-1 {
			close(all)
		}
	}); err != nil {
		return nil, err
	}
	stop, err := t.run(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	out, err := lw.Events(ctx)
	if err != nil {
		return nil, err
	}
	join := events / 3
	joined := make(chan error, 1)
	sent := make([]time.Duration, events)
	first := time.Since(began) + 20*time.Millisecond
	for i, p := range changed {
		time.Sleep(first + time.Duration(i)*time.Millisecond - time.Since(began))
		if i == join {
			go func() { joined <- t.handle(func(*corev1.Pod) {}) }()
		}
		sent[i] = time.Since(began)
		out <- watch.Event{Type: watch.Modified, Object: p}
	}
	<-all
	if err := <-joined; err != nil {
		return nil, err
	}
	return harness.Figures{
		"stall":  longest(sent[join:], arrived[join:]),
		"before": longest(sent[join/2:join], arrived[join/2:join]),
	}, nil
}

// longest gives the longest wait in milliseconds.
func longest(sent, arrived []time.Duration) float64 {
	var most time.Duration
	for i := range sent {
		most = max(most, arrived[i]-sent[i])
	}
	return float64(most) / float64(time.Millisecond)
}
