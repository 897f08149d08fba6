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

// share is a shared informer of any type.
type share interface {
	identity() key
	title() string
	health() informer.Health
	// start runs the informer unless it already runs; the factory's lock is held.
	start(ctx context.Context) error
	// run returns the current run, or nil, and the channel that is closed when its informer has synced.
	run() (r *running, synced <-chan struct{})
}

// shared is one informer, its users, indexes and subscriptions. An informer runs once: after a stop a new one replaces
// it, with the same indexes and subscriptions. The old one is not emptied: a lister that is reading it answers from its
// last state, and its memory is freed with the last reference.
type shared[T any] struct {
	f    *Factory
	key  key
	name string
	src  source.Source[T]
	// current is the current informer. Readers load it without the lock, so that a callback can read while an index is
	// being added.
	current atomic.Pointer[informer.Informer[T]]

	// refs counts the users. It is guarded by the factory's lock.
	refs int

	mu      sync.Mutex
	indexes map[string]index[T]
	subs    []member[T]
	now     *running // the run of current; nil before it was started
}

// member is a subscription and the function that subscribes it to an informer.
type member[T any] struct {
	sub  *Subscription
	join func(*informer.Informer[T]) (registration, error)
}

// running is one run of one informer.
type running struct {
	title  string
	ctx    context.Context
	cancel context.CancelFunc
	// stop ends the informer and waits for its callbacks until ctx ends.
	stop func(ctx context.Context) error
	done chan struct{}
	// stopping is guarded by the factory's lock. It says that a caller waits in stop and will report callbacks that are
	// still running.
	stopping bool
}

// acquire returns the shared informer of a key, which it makes for the first user, and counts the user. The factory's
// lock is held.
func acquire[T any](f *Factory, k key, open func(*kube.Options) (source.Source[T], error)) (*shared[T], error) {
	if found, ok := f.shares[k]; ok {
		s := found.(*shared[T]) // the key has form and type, so the type is certain
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
	f.sortShares()
	return s, nil
}

// release removes one user and stops the informer after the last.
func (s *shared[T]) release() {
	s.f.mu.Lock()
	s.refs--
	last := s.refs == 0
	if last {
		delete(s.f.shares, s.key)
		s.f.sortShares()
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

// renew replaces the informer by a new one. The lock is held, or no other goroutine knows s yet.
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
		m.sub.register(s, t)
	}
	s.current.Store(inf)
	s.now = nil
	return nil
}

// renewIfStopped replaces an informer that has been stopped. The lock is held.
func (s *shared[T]) renewIfStopped() error {
	if s.now == nil || s.now.ctx.Err() == nil {
		return nil
	}
	return s.renew()
}

// onRunnable calls do with an informer that has not been stopped. If the informer is stopped during the call, it is
// replaced, and do is called with the new one. The lock is held.
func (s *shared[T]) onRunnable(do func(*informer.Informer[T]) error) error {
	if err := s.renewIfStopped(); err != nil {
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
	if err := s.renewIfStopped(); err != nil || s.now != nil {
		return err
	}
	inf := s.current.Load()
	r := &running{title: s.name, stop: inf.Stop, done: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(ctx)
	s.now = r
	s.f.active[r] = struct{}{}
	go s.runInformer(inf, r)
	return nil
}

// runInformer runs the informer until the run's context ends: by Stop, by the last Release or with the context of
// Start.
func (s *shared[T]) runInformer(inf *informer.Informer[T], r *running) {
	defer close(r.done)
	err := inf.Run(r.ctx)
	r.cancel()

	s.mu.Lock()
	var renewed error
	if s.now == r {
		// The new informer accepts subscriptions and indexes, and no handle or lister refers to the last state any more.
		// A read that is in progress continues on the old informer.
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
