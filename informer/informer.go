package informer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/mirador-k8s/mirador/fanout"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/reflector"
	"github.com/mirador-k8s/mirador/source"
	"github.com/mirador-k8s/mirador/store"
)

// lifecycle is where an informer stands between New and the end.
type lifecycle uint8

const (
	created  lifecycle = iota
	starting           // again: what the last Run left is being dropped
	running
	stopping
	stopped
)

// Informer mirrors one source into a store and tells handlers what changes.
type Informer[T any] struct {
	src        source.Source[T]
	cfg        *settings
	transform  func(T) (T, error)
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

	// write is held while a batch goes into the store; it is what AddIndex waits for. Of the caller's functions only
	// those of indexes, of the codec and of DetectWrites are called meanwhile, and their options say that they must not
	// call the informer. Transforms run without it (see decodeListed), reports of problems after it (see beginWrite).
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

// New makes an informer over a source; Run starts it.
func New[T any](src source.Source[T], opts ...Option) (*Informer[T], error) {
	if src == nil {
		return nil, errors.New("informer: the source is nil; make one, such as kube.Typed[*corev1.Pod](config)")
	}
	cfg, indexes, err := configure(src, opts)
	if err != nil {
		return nil, err
	}
	i := &Informer[T]{src: src, cfg: cfg, logContext: context.Background()}
	i.transform, _ = cfg.transform.(func(T) (T, error))
	if s, ok := cfg.start.(State[T]); ok {
		i.start = &s
		cfg.start = nil // held once, and let go of when it is in the store
	}
	codec, _ := cfg.codec.(*object.Codec[T])
	i.writer, err = store.New(store.Options[T]{
		Indexes: indexes, LogBytes: cfg.logBytes, LogAge: cfg.logAge,
		Layout: cfg.layout, Codec: codec, ReadCache: cfg.readCache, OnWritten: cfg.onWritten,
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

// prepare makes what one Run uses up.
func (i *Informer[T]) prepare() error {
	waiting := queueLimits{maxBytes: i.cfg.queueBytes, keepAll: i.cfg.verbatim}
	if i.cfg.layout == store.Packed {
		// What waits is decoded and encoded, some thirty times what is kept of it.
		waiting.listBytes, waiting.maxBatch = 1<<20, 100
	}
	q := newBatchQueue[T](waiting)
	var sink reflector.Sink[T] = q
	steps, _ := i.cfg.steps.(*steps[T])
	if steps != nil {
		sink = steps.sink(q)
	}
	var at object.Version
	unsure := false
	if i.start != nil {
		at, unsure = i.start.Version, i.start.mixed()
	}
	refl, err := reflector.New(reflector.Options[T]{
		Source: i.src, Sink: sink, StartAt: at, Unsure: unsure,
		PageSize: i.cfg.pageSize, FirstList: i.cfg.firstList, WatchTimeout: i.cfg.watchTimeout, Silence: i.cfg.silence,
		Encoded:    i.cfg.layout == store.Packed && i.transform == nil,
		Shares:     i.cfg.layout == store.Shared,
		TrustOrder: i.cfg.verbatim, Backoff: i.cfg.backoff, OnProblem: i.fromReflector,
	})
	if err != nil {
		return fmt.Errorf("informer %s: %w", i.cfg.name, err)
	}
	i.queue, i.refl = q, refl
	opts := fanout.Options{
		OnPanic: func(handler string, key object.Key, recovered any, stack []byte) {
			i.problem("handle", key, fmt.Errorf("handler %s panicked: %v\n%s", handler, recovered, stack))
		},
		Crash:    i.cfg.crash,
		Together: i.cfg.layout == store.Packed,
	}
	if steps != nil {
		opts.Go = steps.handlers
	}
	i.fan = fanout.New[*store.Entry[T]](opts)
	return nil
}

// Name is the informer's name.
func (i *Informer[T]) Name() string { return i.cfg.name }

// Reader reads the store. It stays valid over a stop and a new Run. After a stop it shows
// the last state until Release or the next Run.
func (i *Informer[T]) Reader() *store.Reader[T] { return i.reader }

// Get gives one object.
func (i *Informer[T]) Get(key object.Key) (T, bool) { return i.reader.Get(key) }

// Snapshot gives one consistent moment: objects, indexes, version.
func (i *Informer[T]) Snapshot() *store.Snapshot[T] { return i.reader.Snapshot() }

// AddIndex adds an index, at any time before the stop; what is stored already is
// indexed before it returns. See IndexFunc for what values must not do.
func (i *Informer[T]) AddIndex(name string, values store.IndexFunc[T]) error {
	return i.AddIndexes(map[string]store.IndexFunc[T]{name: values})
}

// AddIndexes adds several indexes at once: all, or none if one of them cannot be.
func (i *Informer[T]) AddIndexes(indexes map[string]store.IndexFunc[T]) error {
	i.mu.Lock()
	gone := i.state == starting || i.state == stopping || i.state == stopped
	i.mu.Unlock()
	if gone {
		return fmt.Errorf("adding indexes to %s: %w", i.cfg.name, ErrStopped)
	}
	i.beginWrite()
	defer i.endWrite()
	if err := i.writer.AddIndexes(indexes); err != nil {
		return fmt.Errorf("adding indexes to %s: %w", i.cfg.name, err)
	}
	return nil
}

// HasSynced reports whether the initial state of this Run is in the store: what is not
// there then does not exist. It is false before and after a Run, also while the store still
// shows the last state.
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

// Synced is closed when the initial state is in the store. After a stop and a new
// Run there is another one.
func (i *Informer[T]) Synced() <-chan struct{} { return i.syncedChan() }

// WaitSynced waits until the initial state is in the store. Its error tells what
// the informer is doing instead.
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
		return fmt.Errorf("waiting for %s to sync: %w", i.cfg.name, ErrStopped)
	case <-ctx.Done():
		h := refl.Health()
		if h.Err != nil {
			return fmt.Errorf("waiting for %s to sync: %w; it is %s because: %w", i.cfg.name, ctx.Err(), h.State, h.Err)
		}
		return fmt.Errorf("waiting for %s to sync: %w; it is %s", i.cfg.name, ctx.Err(), h.State)
	}
}

// WaitVersion waits until the store has everything up to version v: after a write
// that the server answered with v, that is when reads see it.
func (i *Informer[T]) WaitVersion(ctx context.Context, v object.Version) error {
	if !v.Ordered() {
		return fmt.Errorf("waiting for version %q of %s: it is not a number, so nothing can be said to be at or after it", v,
			i.cfg.name)
	}
	i.mu.Lock()
	ended := i.ended
	i.mu.Unlock()
	// Of a snapshot, and not the reader's: that one is known a moment before the
	// snapshot that has it can be taken.
	reached, forget := i.waiting.add(v, func() object.Version { return i.reader.Snapshot().Version() })
	defer forget()
	select {
	case <-reached:
		return nil
	case <-ended:
		return fmt.Errorf("waiting for version %s of %s, at %s: %w", v, i.cfg.name, i.reader.Version(), ErrStopped)
	case <-ctx.Done():
		return fmt.Errorf("waiting for version %s of %s, at %s: %w", v, i.cfg.name, i.reader.Version(), ctx.Err())
	}
}
