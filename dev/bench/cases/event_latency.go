package cases

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/dev/bench/harness"
	"github.com/mirador-k8s/mirador/dev/bench/measure"
	"github.com/mirador-k8s/mirador/store"
)

const (
	latencyRate     = 1000 // events per second
	latencyHandlers = 10
)

// eventLatency measures the time from sending an event until each of ten handlers receives it, at a steady rate far
// below saturation.
func eventLatency() harness.Case {
	c := harness.Case{Name: "event-latency"}
	for _, s := range sides() {
		for _, b := range beats {
			c.Variants = append(c.Variants,
				harness.Variant{Name: s.name + b.name, Run: func(ctx context.Context, p *harness.Params) (harness.Figures, error) {
					pods, set := realPods(p.Size(5_000, 300))
					return pace(ctx, s, b, pods, changes(set, pods, p.Size(2_500, 300)))
				}})
			if s.name == peer {
				continue
			}
			for _, figure := range []string{"p50", "p99"} {
				row := harness.Row{Name: fmt.Sprintf("event to handler at 1,000 events/s, 10 handlers, %s, %s%s", figure, apiOf(s),
					b.name), Layout: s.layout, Unit: "us",
					Ours: s.name + b.name, Peer: peer + b.name, Figure: figure}
				if s.layout == store.Live.String() {
					row.Goal = harness.Ratio(0.5)
				}
				c.Rows = append(c.Rows, row)
			}
		}
	}
	c.Variants = append(c.Variants,
		harness.Variant{Name: "driver", Floor: true,
			Run: func(_ context.Context, p *harness.Params) (harness.Figures, error) {
				n := p.Size(2_500, 300)
				figures := harness.Figures{}
				for name, handlers := range map[string]int{"one": 1, "ten": latencyHandlers} {
					for figure, value := range bareLatency(n, handlers) {
						figures[name+" "+figure] = value
					}
				}
				return figures, nil
			}})
	for _, figure := range []string{"p50", "p99"} {
		c.Rows = append(c.Rows,
			harness.Row{Name: "the same to one waiting goroutine and no informer, " + figure, Unit: "us", Ours: "driver",
				Figure: "one " + figure},
			harness.Row{Name: "the same to ten goroutines and no informer, " + figure, Unit: "us", Ours: "driver", Peer: peer,
				Figure: "ten " + figure, PeerFigure: figure})
	}
	return c
}

// bareLatency measures the least latency of an informer with one goroutine per handler: the driver sends to a waiting
// goroutine, which starts one for each further handler. The machine is idle in between.
func bareLatency(n, handlers int) harness.Figures {
	events := make(chan int, 1)
	began := time.Now()
	sent, arrived := make([]time.Duration, n), make([]time.Duration, n*handlers)
	var seen sync.WaitGroup
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range events {
			for h := 1; h < handlers; h++ {
				seen.Go(func() { arrived[i*handlers+h] = time.Since(began) })
			}
			arrived[i*handlers] = time.Since(began)
		}
	}()
	for i := range n {
		time.Sleep(time.Duration(i)*time.Second/latencyRate - time.Since(began))
		sent[i] = time.Since(began)
		events <- i
	}
	close(events)
	<-done
	seen.Wait()
	all := make([]time.Duration, n*handlers)
	for i := range all {
		all[i] = arrived[i] - sent[i/handlers]
	}
	return latencies(all)
}

func latencies(all []time.Duration) harness.Figures {
	us := float64(time.Microsecond)
	return harness.Figures{
		"p50": float64(measure.Percentile(all, 0.5)) / us,
		"p99": float64(measure.Percentile(all, 0.99)) / us,
	}
}

// apiOf returns the API through which a side of ours is used.
func apiOf(s side) string {
	api, _, _ := strings.Cut(s.name, " ")
	return api
}

// beat is how the sender of events waits between two of them. It matters because the sender goes back to waiting
// before the receiver runs: both use the same processor.
type beat struct {
	name  string
	start func(n int) (wait func(i int) error, end func(), err error)
}

// beats are a sleep, and a read from a pipe, which is how a watch waits for its connection.
var beats = []beat{{"", sleeping}, {", sent from a pipe", piped}}

// due returns how long it is until the i-th beat after a start time.
func due(began time.Time, i int) time.Duration {
	return time.Duration(i)*time.Second/latencyRate - time.Since(began)
}

func sleeping(int) (wait func(i int) error, end func(), err error) {
	began := time.Now().Add(50 * time.Millisecond)
	return func(i int) error {
		time.Sleep(due(began, i))
		return nil
	}, func() {}, nil
}

func piped(n int) (wait func(i int) error, end func(), err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	var writer sync.WaitGroup
	writer.Go(func() {
		defer w.Close() // ends the reader
		began := time.Now().Add(50 * time.Millisecond)
		for i := range n {
			time.Sleep(due(began, i))
			if _, err := w.Write([]byte{1}); err != nil {
				return // the reader has closed the pipe
			}
		}
	})
	one := make([]byte, 1)
	wait = func(int) error {
		_, err := io.ReadFull(r, one)
		return err
	}
	return wait, func() { r.Close(); writer.Wait() }, nil // closing the read end cannot lose data
}

// pace sends the changes at a steady rate and returns the latencies of all handlers.
func pace(ctx context.Context, s side, b beat, pods, changed []*corev1.Pod) (harness.Figures, error) {
	began := time.Now()
	sent := make([]time.Duration, len(changed))
	arrived := make([][]time.Duration, latencyHandlers)
	var seen sync.WaitGroup
	handlers := make([]func(*corev1.Pod), latencyHandlers)
	for h := range handlers {
		arrived[h] = make([]time.Duration, len(changed))
		seen.Add(len(changed))
		handlers[h] = func(p *corev1.Pod) {
			arrived[h][number(p)] = time.Since(began)
			seen.Done()
		}
	}
	run, err := s.start(ctx, pods, handlers...)
	if err != nil {
		return nil, err
	}
	defer run.stop()
	runtime.GC()
	wait, end, err := b.start(len(changed))
	if err != nil {
		return nil, err
	}
	defer end()
	for i, p := range changed {
		if err := wait(i); err != nil {
			return nil, err
		}
		sent[i] = time.Since(began)
		run.update(p)
	}
	seen.Wait()
	warm := len(changed) / 10 // the first tenth is the warm-up
	var all []time.Duration
	for h := range arrived {
		for i := warm; i < len(changed); i++ {
			all = append(all, arrived[h][i]-sent[i])
		}
	}
	return latencies(all), nil
}
