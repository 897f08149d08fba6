// Package sharedinformer adapts shared informers, client-go's and compat's, to the conformance kit.
package sharedinformer

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/compat/cache"
	"github.com/mirador-k8s/mirador/informertest"
	"github.com/mirador-k8s/mirador/informertest/kit"
	"github.com/mirador-k8s/mirador/object"
)

// Subject is a shared informer of pods, as the kit tests it. client-go's interface has no health and no way to wait for
// handlers, so a test of compat replaces Health and Stop.
type Subject struct {
	Informer cache.SharedIndexInformer
	cancel   context.CancelFunc
}

// AddHandler adds a handler and ignores the name, because client-go's handlers have none.
func (s *Subject) AddHandler(_ string, handle func(informertest.Event)) (synced func() bool, err error) {
	reg, err := s.Informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			p := obj.(*corev1.Pod)
			handle(informertest.Event{Type: object.Added, Key: keyOf(p), New: p, Initial: initial})
		},
		UpdateFunc: func(old, now any) {
			p := now.(*corev1.Pod)
			handle(informertest.Event{Type: object.Updated, Key: keyOf(p), Old: old.(*corev1.Pod), New: p})
		},
		DeleteFunc: func(obj any) {
			e := informertest.Event{Type: object.Deleted}
			if missed, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj, e.Missed = missed.Obj, true
			}
			e.Old = obj.(*corev1.Pod)
			e.Key = keyOf(e.Old)
			handle(e)
		},
	})
	if err != nil {
		return nil, err
	}
	return reg.HasSynced, nil
}

// Run runs the informer until the context ends or Stop is called.
func (s *Subject) Run(ctx context.Context) error {
	ctx, s.cancel = context.WithCancel(ctx)
	defer s.cancel()
	s.Informer.RunWithContext(ctx)
	return nil
}

// Stop cancels Run and waits for the end of the context, because client-go does not tell which handlers still run.
func (s *Subject) Stop(ctx context.Context) error {
	s.cancel()
	<-ctx.Done()
	return ctx.Err()
}

// Synced reports whether the informer has synced.
func (s *Subject) Synced() bool { return s.Informer.HasSynced() }

// Get returns the stored pod with a key.
func (s *Subject) Get(key object.Key) (*corev1.Pod, bool) {
	obj, ok, err := s.Informer.GetStore().GetByKey(string(key))
	if err != nil || !ok {
		return nil, false
	}
	return obj.(*corev1.Pod), true
}

// Versions returns the versions of all stored pods.
func (s *Subject) Versions() map[object.Key]object.Version {
	out := map[object.Key]object.Version{}
	for _, obj := range s.Informer.GetStore().List() {
		p := obj.(*corev1.Pod)
		out[keyOf(p)] = object.Version(p.ResourceVersion)
	}
	return out
}

// Health returns what client-go's informer reports: only the version.
func (s *Subject) Health() informertest.Health {
	return informertest.Health{Version: object.Version(s.Informer.LastSyncResourceVersion())}
}

func keyOf(p *corev1.Pod) object.Key { return object.NewKey(p.Namespace, p.Name) }

// TransformFor returns the transform of a setup for a shared informer, or nil if the setup has none.
func TransformFor(setup kit.Setup) cache.TransformFunc {
	if setup.Transform == nil {
		return nil
	}
	return func(obj any) (any, error) {
		p, err := setup.Transform(obj.(*corev1.Pod))
		if err != nil {
			return nil, err
		}
		return p, nil
	}
}
