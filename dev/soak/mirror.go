package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/reflector"
	"github.com/mirador-k8s/mirador/source/kube"
	"github.com/mirador-k8s/mirador/store"
)

// mirror is one informer with its permanent handlers.
type mirror struct {
	inf     *informer.Informer[*corev1.Pod]
	lasting map[string]*witness
	ended   chan error

	mu       sync.Mutex
	problems []informer.Problem // the first few
}

// slowest is how long the permanent slow handler takes for an event: it cannot keep up with 200 events per second.
const slowest = 7 * time.Millisecond

// startMirror starts an informer; it ends with ctx. The quick handler never decodes an object: the packed mirror's
// uses entries, and a live one has nothing to decode.
func startMirror(ctx context.Context, cfg *rest.Config, client *http.Client, layout store.Layout) (*mirror, error) {
	src, err := kube.Typed[*corev1.Pod](cfg, &kube.Options{HTTPClient: client, UserAgent: "mirador-soak"})
	if err != nil {
		return nil, err
	}
	m := &mirror{lasting: map[string]*witness{}, ended: make(chan error, 1)}
	m.inf, err = informer.New(src, &informer.Options[*corev1.Pod]{
		Name: layout.String(), Layout: layout, OnProblem: m.note, Logger: slog.New(slog.DiscardHandler),
		Indexes: informer.Indexes[*corev1.Pod]{
			"node": func(p *corev1.Pod) ([]string, error) { return []string{p.Spec.NodeName}, nil },
		},
	})
	if err != nil {
		return nil, err
	}
	quick, slow := newWitness(0), newWitness(slowest)
	m.lasting["quick"], m.lasting["slow"] = quick, slow
	if _, err = m.inf.SubscribeEntries(quick.handleEntry, &informer.HandlerOptions{Name: "quick"}); err != nil {
		return nil, err
	}
	if _, err = m.inf.Subscribe(slow, &informer.HandlerOptions{Name: "slow", MaxBacklog: 100}); err != nil {
		return nil, err
	}
	go func() { m.ended <- m.inf.Run(ctx) }()
	return m, nil
}

func (m *mirror) note(p informer.Problem) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.problems) < 20 {
		m.problems = append(m.problems, p)
	}
}

// firstProblems returns the first problems as text.
func (m *mirror) firstProblems() (out []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.problems {
		out = append(out, fmt.Sprintf("%s %s: %v", p.Doing, p.Key, p.Err))
	}
	return out
}

// shortestWatch is the least duration of a watch that ends normally.
const shortestWatch = 5 * time.Minute

// explained returns how many watches may have been opened: the first one, another for each that the server ended at
// its timeout, and another for each that failed. Nothing here is silent for minutes, so watches closed because of
// silence do not count.
func explained(h reflector.Health, ran time.Duration) uint64 {
	n := 1 + uint64(ran/shortestWatch)
	for _, failures := range h.Errors {
		n += failures
	}
	return n - h.Silences // silences are among the errors
}

// versions returns the versions in the mirror's store.
func (m *mirror) versions() map[object.Key]object.Version { return versionsOf(m.inf.Snapshot()) }

func versionsOf(s *store.Snapshot[*corev1.Pod]) map[object.Key]object.Version {
	out := map[object.Key]object.Version{}
	for e := range s.Entries() {
		out[e.Key] = e.Version
	}
	return out
}

// settle waits until every permanent handler has received what the mirror has, or until ctx ends. The pods no longer
// change.
func (m *mirror) settle(ctx context.Context) {
	t := time.NewTicker(200 * time.Millisecond)
	defer t.Stop()
	have := m.versions()
	for _, w := range m.lasting {
		for {
			if view, _ := w.sums(); maps.Equal(view, have) {
				break
			}
			select {
			case <-t.C:
			case <-ctx.Done():
				return
			}
		}
	}
}
