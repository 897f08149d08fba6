package informer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mirador-k8s/mirador/fanout"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/reflector"
	"github.com/mirador-k8s/mirador/source"
	"github.com/mirador-k8s/mirador/store"
)

// lifecycle is the phase of an informer's life.
type lifecycle uint8

const (
	created  lifecycle = iota
	starting           // for another Run: the state of the last one is being dropped
	running
	stopping
	stopped
)

// Informer mirrors one source into a store and delivers its changes to handlers.
type Informer[T any] struct {
	src        source.Source[T]
	opts       Options[T]
	logContext context.Context

	reader   *store.Reader[T]
	epoch    atomic.Uint64 // of the last commit
	epochs   atomic.Pointer[epochRecord]
	events   atomic.Uint64
	stale    atomic.Uint64
	handlers atomic.Uint64

	countsMu sync.Mutex
	counts   map[string]uint64
	reports  reports

	waiting waitlist

	// write is held while a batch is written to the store; AddIndexes waits for it. The only callbacks that run while it
	// is held are index functions, the codec and DetectWrites, and they must not call the informer. Transforms run
	// without it (see decodeListed), and problems are reported after it is released (see beginWrite).
	write   sync.Mutex
	writing atomic.Bool
	writer  *store.Writer[T]
	batch   batch[T]

	mu     sync.Mutex
	state  lifecycle
	fan    *fanout.Fanout[*store.Entry[T]]
	queue  *batchQueue[T]
	refl   *reflector.Reflector[T]
	synced chan struct{}
	cancel context.CancelFunc
	ended  chan struct{}
	start  *State[T]
}

// New returns an informer over a source; Run starts it. Nil options mean the defaults.
func New[T any](src source.Source[T], opts *Options[T]) (*Informer[T], error) {
	if src == nil {
		return nil, errors.New("informer: the source is nil; make one, such as kube.Typed[*corev1.Pod](config, nil)")
	}
	i := &Informer[T]{src: src, logContext: context.Background()}
	if opts != nil {
		i.opts = *opts
	}
	if err := i.opts.complete(src); err != nil {
		return nil, fmt.Errorf("informer: %w", err)
	}
	i.start, i.opts.StartFrom = i.opts.StartFrom, nil // released when it is in the store
	var err error
	i.writer, err = store.New(store.Options[T]{
		Indexes: maps.Clone(i.opts.Indexes), LogBytes: i.opts.HistoryBytes, LogAge: i.opts.HistoryAge,
		Layout: i.opts.Layout, Codec: i.opts.Codec, ReadCache: i.opts.ReadCache, OnWritten: i.opts.DetectWrites,
		OnError: func(key object.Key, index string, err error) {
			if index == "" {
				i.problem("layout", key, err)
				return
			}
			i.problem("index", key, fmt.Errorf("index %q: %w", index, err))
		},
	})
	if err != nil {
		return nil, fmt.Errorf("informer: %w", err)
	}
	i.reader = i.writer.Reader()
	i.epochs.Store(&epochRecord{})
	i.synced, i.ended = make(chan struct{}), make(chan struct{})
	if err := i.prepare(); err != nil {
		return nil, err
	}
	return i, nil
}

// prepare makes the queue, the reflector and the fanout for one Run.
func (i *Informer[T]) prepare() error {
	waiting := queueLimits{maxBytes: i.opts.QueueBytes, keepAll: i.opts.Verbatim}
	if i.opts.Layout == store.Packed {
		// A waiting object is held decoded and encoded, which takes far more memory than its packed form.
		waiting.listBytes, waiting.maxBatch = 1<<20, 100
	}
	q := newBatchQueue[T](waiting)
	var sink reflector.Sink[T] = q
	steps := i.opts.steps
	if steps != nil {
		sink = steps.sink(q)
	}
	var at object.Version
	var lastEvent time.Time
	if i.start != nil {
		at, lastEvent = i.start.Version, i.start.LastEvent
	}
	refl, err := reflector.New(reflector.Options[T]{
		Source: i.src, Sink: sink, StartAt: at, LastEvent: lastEvent,
		PageSize: i.opts.PageSize, FirstList: i.opts.FirstList, WatchTimeout: i.opts.WatchTimeout, Silence: i.opts.Silence,
		Encoded: i.opts.Layout == store.Packed && i.opts.Transform == nil,
		Shares:  i.opts.Layout == store.Shared,
		Admit:   i.opts.Admit, TrustOrder: i.opts.Verbatim, Backoff: i.opts.Backoff, OnProblem: i.fromReflector,
	})
	if err != nil {
		return fmt.Errorf("informer %s: %w", i.opts.Name, err)
	}
	i.queue, i.refl = q, refl
	opts := fanout.Options{
		OnPanic: func(handler string, key object.Key, recovered any, stack []byte) {
			i.problem("handle", key, fmt.Errorf("handler %s panicked: %v\n%s", handler, recovered, stack))
		},
		Crash:    i.opts.CrashOnPanic,
		Together: i.opts.Layout == store.Packed,
	}
	if steps != nil {
		opts.Go = steps.handlers
	}
	i.fan = fanout.New[*store.Entry[T]](opts)
	return nil
}

// Name is the informer's name.
func (i *Informer[T]) Name() string { return i.opts.Name }

// Reader returns a reader of the store. It stays valid when the informer stops and runs again. After a stop it shows
// the last state until Release or the next Run.
func (i *Informer[T]) Reader() *store.Reader[T] { return i.reader }

// Get returns one object.
func (i *Informer[T]) Get(key object.Key) (T, bool) { return i.reader.Get(key) }

// Snapshot returns a consistent view of objects, indexes and version.
func (i *Informer[T]) Snapshot() *store.Snapshot[T] { return i.reader.Snapshot() }

// AddIndexes adds indexes, before Run or while it runs: all of them, or none and an error. When it returns, all stored
// objects are indexed. See Indexes for what an index function must not do.
func (i *Informer[T]) AddIndexes(indexes Indexes[T]) error {
	i.mu.Lock()
	gone := i.state == starting || i.state == stopping || i.state == stopped
	i.mu.Unlock()
	if gone {
		return fmt.Errorf("adding indexes to %s: %w; add them before Run or while it runs", i.opts.Name, ErrStopped)
	}
	i.beginWrite()
	defer i.endWrite()
	if err := i.writer.AddIndexes(indexes); err != nil {
		return fmt.Errorf("adding indexes to %s: %w", i.opts.Name, err)
	}
	return nil
}

// HasSynced reports whether the store has the initial state of this Run: then an object that is not in the store does
// not exist. It is false before and after a Run, even while the store still shows the last state.
func (i *Informer[T]) HasSynced() bool {
	select {
	case <-i.syncedChan():
		return true
	default:
		return false
	}
}

func (i *Informer[T]) syncedChan() chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.synced
}

// Synced returns a channel that is closed when the store has the initial state. Each Run has its own channel.
func (i *Informer[T]) Synced() <-chan struct{} { return i.syncedChan() }

// WaitSynced waits until the store has the initial state. Its error says what the informer is doing instead.
func (i *Informer[T]) WaitSynced(ctx context.Context) error {
	i.mu.Lock()
	synced, ended, refl := i.synced, i.ended, i.refl
	i.mu.Unlock()
	select {
	case <-synced:
		return nil
	default:
	}
	select {
	case <-synced:
		return nil
	case <-ended:
		return fmt.Errorf("waiting for %s to sync: %w; call Run again", i.opts.Name, ErrStopped)
	case <-ctx.Done():
		h := refl.Health()
		if h.Err != nil {
			return fmt.Errorf("waiting for %s to sync: %w; it is %s because: %w", i.opts.Name, ctx.Err(), h.State, h.Err)
		}
		return fmt.Errorf("waiting for %s to sync: %w; it is %s", i.opts.Name, ctx.Err(), h.State)
	}
}

// WaitVersion waits until the store has all changes up to version v. After a write to which the server returned
// version v, reads of the informer then see that write.
func (i *Informer[T]) WaitVersion(ctx context.Context, v object.Version) error {
	if !v.Ordered() {
		return fmt.Errorf("waiting for version %q of %s: versions that are not numbers have no order",
			v, i.opts.Name)
	}
	i.mu.Lock()
	ended := i.ended
	i.mu.Unlock()
	// The version of a snapshot, not of the reader: the reader has a version slightly before a snapshot shows it.
	reached, forget := i.waiting.add(v, func() object.Version { return i.reader.Snapshot().Version() })
	defer forget()
	select {
	case <-reached:
		return nil
	case <-ended:
		return fmt.Errorf("waiting for version %s of %s, which is at %s: %w and follows no more changes; call Run again",
			v, i.opts.Name, i.reader.Version(), ErrStopped)
	case <-ctx.Done():
		return fmt.Errorf("waiting for version %s of %s, which is at %s: %w", v, i.opts.Name, i.reader.Version(), ctx.Err())
	}
}
