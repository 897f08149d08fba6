package informer_test

import (
	"context"
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/informertest"
	"github.com/mirador-k8s/mirador/informertest/kit"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source/kube"
	"github.com/mirador-k8s/mirador/store"
)

// The informer, over source/kube and an in-memory API server, keeps every promise of the kit in each layout.
func TestConformance(t *testing.T) {
	for _, layout := range []store.Layout{store.Live, store.Shared, store.Packed} {
		t.Run(layout.String(), func(t *testing.T) {
			kit.Conformance(t, func(s kit.Setup) (kit.Subject, error) {
				return newSubject(s, layout)
			})
		})
	}
}

func newSubject(s kit.Setup, layout store.Layout) (kit.Subject, error) {
	src, err := kube.Typed[*corev1.Pod](s.Config, nil)
	if err != nil {
		return nil, err
	}
	inf, err := informer.New(src, &informer.Options[*corev1.Pod]{Layout: layout, Transform: s.Transform,
		Logger: slog.New(slog.DiscardHandler), OnProblem: func(p informer.Problem) { s.OnProblem(p.Err) }})
	if err != nil {
		return nil, err
	}
	return &subject{inf, s.Backlog}, nil
}

// subject adapts the informer to the kit.
type subject struct {
	*informer.Informer[*corev1.Pod]
	backlog int
}

func (s *subject) AddHandler(name string, handle func(informertest.Event)) (func() bool, error) {
	sub, err := s.Subscribe(informer.HandlerFunc[*corev1.Pod](handle),
		&informer.HandlerOptions{Name: name, MaxBacklog: s.backlog})
	if err != nil {
		return nil, err
	}
	return sub.HasSynced, nil
}

func (s *subject) Run(ctx context.Context) error { return s.Informer.Run(ctx) }
func (s *subject) Synced() bool                  { return s.HasSynced() }

func (s *subject) Versions() map[object.Key]object.Version {
	versions := map[object.Key]object.Version{}
	for e := range s.Snapshot().Entries() {
		versions[e.Key] = e.Version
	}
	return versions
}

func (s *subject) Health() informertest.Health {
	h := s.Informer.Health()
	out := informertest.Health{State: h.Reflector.State.String(), Version: h.Reflector.Version,
		LastEvent: h.Reflector.LastEvent}
	for _, n := range h.Problems {
		out.Problems += n
	}
	return out
}
