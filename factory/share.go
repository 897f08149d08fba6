package factory

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/source"
	"github.com/mirador-k8s/mirador/source/kube"
)

// share is a shared informer without its type.
type share interface {
	identity() key
	title() string
	health() informer.Health
	// start runs the informer unless it runs; the factory's lock is held.
	start(ctx context.Context) error
	// run is the run that is under way, or nil, and synced its informer's mark.
	run() (r *running, synced <-chan struct{})
}

// shared is one informer and those who use it. An informer is run once: after a
// stop a new one takes its place, with the same indexes and subscriptions. The old one is
// never emptied: a lister that has it in hand answers from its last state, and its
// memory goes with the last reference.
type shared[T any] struct {
	f    *Factory
	key  key
	name string
	src  source.Source[T]
	// current is the informer of now. Readers load it without the lock, so that
	// a callback may ask anything while an index is being added.
	current atomic.Pointer[informer.Informer[T]]

	// refs is guarded by the factory's lock.
	refs int

	mu      sync.Mutex
	indexes map[string]index[T]
	subs    []member[T]
	now     *running // the run of current; nil before it was started
}

// member is a subscription and how it joins an informer.
type member[T any] struct {
	sub  *Subscription
	join func(*informer.Informer[T]) (tie, error)
}

// running is one run of one informer.
type running struct {
	title  string
	ctx    context.Context
	cancel context.CancelFunc
	// stop ends the informer and waits for its callbacks until ctx ends.
	stop func(ctx context.Context) error
	done chan struct{}
	// stopping is guarded by the factory's lock: somebody waits in stop and will
	// tell what is still running.
	stopping bool
}

// acquire finds or makes the shared informer of a key and counts one more user.
// The factory's lock is held.
func acquire[T any](f *Factory, k key, open func(*kube.Options) (source.Source[T], error)) (*shared[T], error) {
	if found, ok := f.shares[k]; ok {
		s := found.(*shared[T]) // the key holds form and type, so it can be no other
		s.refs++
		return s, nil
	}
	s := &shared[T]{f: f, key: k, name: k.title(f.set.Cluster), indexes: map[string]index[T]{}, refs: 1}
	src, err := open(&kube.Options{
		Namespace: k.namespace, LabelSelector: k.labels, FieldSelector: k.fields, Cluster: f.set.Cluster,
		Tweak: f.set.Tweak, HTTPClient: f.client, UserAgent: f.cfg.UserAgent,
	})
	if err != nil {
		return nil, err
	}
	s.src = src
	if err := s.renew(); err != nil {
		return nil, err
	}
	if f.started() {
		if err := s.start(f.ctx); err != nil {
			return nil, err
		}
	}
	f.shares[k] = s
	f.changed()
	return s, nil
}

// release counts one user less and ends the informer after the last.
func (s *shared[T]) release() {
	s.f.mu.Lock()
	s.refs--
	last := s.refs == 0
	if last {
		delete(s.f.shares, s.key)
		s.f.changed()
	}
	s.f.mu.Unlock()
	if !last {
		return
	}
	s.mu.Lock()
	r := s.now
	s.mu.Unlock()
	if r != nil {
		r.cancel()
	}
}

// renew puts a new informer in the place of the old. The lock is held, or nobody
// else knows s yet.
func (s *shared[T]) renew() error {
	set := s.f.set
	resync := set.Resync
	if own, ok := set.resyncFor[reflect.TypeFor[T]()]; ok {
		resync = own
	}
	opts := &informer.Options[T]{
		Name: s.name, Indexes: informer.Indexes[T]{}, Transform: transformFor[T](set),
		Layout: set.Layout, HistoryBytes: set.HistoryBytes, HistoryAge: set.HistoryAge,
		WatchTimeout: set.WatchTimeout, Backoff: set.Backoff,
		Resync: resync, Logger: set.Logger, OnProblem: set.OnProblem,
	}
	for name, x := range s.indexes {
		opts.Indexes[name] = x.values
	}
	inf, err := informer.New(s.src, opts)
	if err != nil {
		return err
	}
	for _, m := range s.subs {
		t, err := m.join(inf)
		if err != nil {
			return err
		}
		m.sub.tied(s, t)
	}
	s.current.Store(inf)
	s.now = nil
	return nil
}

// fresh puts a new informer in the place of one that has been stopped. The lock
// is held.
func (s *shared[T]) fresh() error {
	if s.now == nil || s.now.ctx.Err() == nil {
		return nil
	}
	return s.renew()
}

// alive does something with an informer that has not been stopped: if it is being
// stopped at this moment, with the one that comes after it. The lock is held.
func (s *shared[T]) alive(do func(*informer.Informer[T]) error) error {
	if err := s.fresh(); err != nil {
		return err
	}
	err := do(s.current.Load())
	stopped := s.now != nil && s.now.ctx.Err() != nil || errors.Is(err, informer.ErrStopped)
	if err == nil || !stopped {
		return err
	}
	if err := s.renew(); err != nil {
		return err
	}
	return do(s.current.Load())
}

func (s *shared[T]) start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fresh(); err != nil || s.now != nil {
		return err
	}
	inf := s.current.Load()
	r := &running{title: s.name, stop: inf.Stop, done: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(ctx)
	s.now = r
	s.f.active[r] = struct{}{}
	go s.work(inf, r)
	return nil
}

// work runs the informer. Its end is that of the run's context, by Stop, by the
// last Release or by the context of Start.
func (s *shared[T]) work(inf *informer.Informer[T], r *running) {
	defer close(r.done)
	err := inf.Run(r.ctx)
	r.cancel()

	s.mu.Lock()
	var renewed error
	if s.now == r {
		// A stopped handle takes subscriptions and indexes again, and nothing that a user still
		// has keeps the last state. Those that read it at this moment read it to their end.
		renewed = s.renew()
	}
	s.mu.Unlock()

	s.f.mu.Lock()
	delete(s.f.active, r)
	if err != nil && !r.stopping {
		s.f.stuck = append(s.f.stuck, err)
	}
	s.f.mu.Unlock()
	if err := errors.Join(err, renewed); err != nil {
		s.f.problem(informer.Problem{Informer: s.name, Doing: "stop", Err: err})
	}
}

func (s *shared[T]) identity() key           { return s.key }
func (s *shared[T]) title() string           { return s.name }
func (s *shared[T]) health() informer.Health { return s.current.Load().Health() }

func (s *shared[T]) run() (*running, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now, s.current.Load().Synced()
}
