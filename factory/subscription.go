package factory

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
)

// Subscription is a handler's subscription to a handle: to one informer, or to one for each namespace of the scope. It
// continues after a stop of the factory and ends with Remove or with the Release of its handle.
type Subscription struct {
	owners []owner // the informers
	handle owner

	mu sync.Mutex
	// registrations is nil once removed: a registration refers to its informer, and so to the mirrored objects.
	registrations map[owner]registration
	removed       bool
	synced        bool // the result of HasSynced when it was removed
}

// registration is a subscription to one informer.
type registration interface {
	Remove()
	Synced() <-chan struct{}
	HasSynced() bool
	Done() <-chan struct{}
}

// owner is a shared informer or a handle that a subscription belongs to.
type owner interface {
	title() string
	forget(*Subscription)
}

// register stores the registration at the owner's current informer.
func (s *Subscription) register(o owner, t registration) {
	s.mu.Lock()
	removed := s.removed
	if !removed {
		s.registrations[o] = t
	}
	s.mu.Unlock()
	if removed {
		t.Remove()
	}
}

// Remove ends the subscription. It does not wait for a call of the handler that is in progress, and may be called by
// the handler.
func (s *Subscription) Remove() {
	s.mu.Lock()
	if !s.removed {
		s.removed, s.synced = true, s.hasSynced()
	}
	registrations := s.registrations
	s.registrations = nil
	s.mu.Unlock()
	for _, t := range registrations {
		t.Remove()
	}
	for _, o := range s.owners {
		o.forget(s)
	}
	s.handle.forget(s)
}

// HasSynced reports whether the handler has received the initial state.
func (s *Subscription) HasSynced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.removed {
		return s.synced
	}
	return s.hasSynced()
}

// hasSynced is HasSynced for a subscription that was not removed. The lock is held.
func (s *Subscription) hasSynced() bool {
	for _, t := range s.registrations {
		if !t.HasSynced() {
			return false
		}
	}
	return true
}

var errEnded = errors.New("the subscription has ended: it was removed, or its informer was stopped")

// WaitSynced waits until the handler has received the initial state.
func (s *Subscription) WaitSynced(ctx context.Context) error {
	for _, o := range s.owners {
		s.mu.Lock()
		t, synced := s.registrations[o], s.removed && s.synced
		s.mu.Unlock()
		switch {
		case synced:
			return nil
		case t == nil:
			return fmt.Errorf("wait for a handler of %s to sync: %w", o.title(), errEnded)
		}
		select {
		case <-t.Synced():
			continue
		default:
		}
		select {
		case <-t.Synced():
		case <-t.Done():
			return fmt.Errorf("wait for a handler of %s to sync: %w", o.title(), errEnded)
		case <-ctx.Done():
			return fmt.Errorf("wait for a handler of %s to sync: %w; WaitForSync says whether its informer has synced",
				o.title(), ctx.Err())
		}
	}
	return nil
}

// Subscribe adds a handler, at any time. It first receives the stored objects, marked initial, then every change, one
// event at a time. After a stop and a new start it receives the initial state again. Nil options mean the defaults.
func (h *Handle[T]) Subscribe(handler informer.Handler[T], opts *informer.HandlerOptions) (*Subscription, error) {
	if handler == nil {
		return nil, fmt.Errorf("subscribe to %s: the handler is nil; give informer.Funcs or an informer.Handler",
			fullName(h.gvr))
	}
	parts, err := h.use("subscribe to")
	if err != nil {
		return nil, err
	}
	if len(parts) > 1 {
		handler = &oneAtATime[T]{to: handler}
	}
	sub := &Subscription{handle: h, registrations: map[owner]registration{}}
	for _, p := range parts {
		sub.owners = append(sub.owners, p)
	}
	join := func(inf *informer.Informer[T]) (registration, error) {
		s, err := inf.Subscribe(handler, opts)
		if err != nil {
			return nil, err // not s: a nil pointer in an interface is not nil
		}
		return s, nil
	}
	for _, p := range parts {
		if err := p.subscribe(member[T]{sub: sub, join: join}); err != nil {
			sub.Remove()
			return nil, err
		}
	}
	if !h.adopt(sub) {
		sub.Remove()
		return nil, h.released("subscribe to")
	}
	return sub, nil
}

// oneAtATime calls a handler of several informers for one event at a time.
type oneAtATime[T any] struct {
	mu sync.Mutex
	to informer.Handler[T]
}

// Handle waits until no other informer calls the handler.
func (o *oneAtATime[T]) Handle(e object.Event[T]) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.to.Handle(e)
}

func (s *shared[T]) subscribe(m member[T]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.onRunnable(func(inf *informer.Informer[T]) error {
		t, err := m.join(inf)
		if err == nil {
			m.sub.register(s, t)
		}
		return err
	})
	if err == nil {
		s.subs = append(s.subs, m)
	}
	return err
}

func (s *shared[T]) forget(sub *Subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, m := range s.subs {
		if m.sub == sub {
			s.subs = append(s.subs[:i:i], s.subs[i+1:]...)
			return
		}
	}
}
