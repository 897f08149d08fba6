package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgo "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/source"
	"github.com/mirador-k8s/mirador/store"
)

// minResync is the shortest resync period there is.
const minResync = time.Second

// forever is how long Run waits for callbacks that do not return: client-go has no
// limit.
const forever = 100 * 365 * 24 * time.Hour

// sharedIndexInformer is a SharedIndexInformer: the engine's informer behind
// client-go's methods.
//
// The rule for its locks: mu is never held while something waits for the engine's writer, as a snapshot, a new handler
// with its replay and a new index do; and nothing that the writer reports, see problem, takes mu.
type sharedIndexInformer struct {
	engine  *informer.Informer[any]
	indexer *keyedStore
	example runtime.Object
	extra   Options

	// runContext is what error handlers are called with.
	runContext atomic.Pointer[context.Context]

	mu               sync.Mutex // see the rule above
	started, stopped bool
	defaultResync    time.Duration
	check            time.Duration // how often resyncs are looked for; 0 never
	firstCheck       time.Time     // set at the start
	transform        TransformFunc
	// tell tells of lists and watches that failed. It is a plain function, and not
	// client-go's handler type, because a type that the program can reach by
	// reflection from a field would bring client-go's Reflector into the program.
	tell     func(ctx context.Context, err error)
	handlers map[*registration]struct{}
	written  func(store.Written) // nil: nobody looks
}

var _ SharedIndexInformer = &sharedIndexInformer{}

// NewSharedInformer makes a shared informer without indexes.
func NewSharedInformer(lw ListerWatcher, exampleObject runtime.Object,
	defaultEventHandlerResyncPeriod time.Duration) SharedInformer {
	return With(Options{}).NewSharedInformer(lw, exampleObject, defaultEventHandlerResyncPeriod)
}

// NewSharedIndexInformer makes a shared informer.
func NewSharedIndexInformer(lw ListerWatcher, exampleObject runtime.Object,
	defaultEventHandlerResyncPeriod time.Duration, indexers Indexers) SharedIndexInformer {
	return With(Options{}).NewSharedIndexInformer(lw, exampleObject, defaultEventHandlerResyncPeriod, indexers)
}

// NewSharedIndexInformerWithOptions makes a shared informer.
func NewSharedIndexInformerWithOptions(lw ListerWatcher, exampleObject runtime.Object,
	options SharedIndexInformerOptions) SharedIndexInformer {
	return With(Options{}).NewSharedIndexInformerWithOptions(lw, exampleObject, options)
}

func newSharedIndexInformer(lw ListerWatcher, example runtime.Object, o SharedIndexInformerOptions,
	extra Options) *sharedIndexInformer {
	describe := o.ObjectDescription
	if describe == "" {
		describe = describeType(exampleOf(example))
	}
	s := &sharedIndexInformer{
		example:       example,
		extra:         extra,
		defaultResync: o.ResyncPeriod,
		check:         o.ResyncPeriod,
		tell:          func(ctx context.Context, err error) { logWatchError(ctx, describe, describe, err) },
		handlers:      map[*registration]struct{}{},
	}
	s.runContext.Store(new(context.Background()))
	src := newSource(lw, exampleOf(example), describe)
	src.transform = func() TransformFunc { return s.transform }
	src.sizes = extra.HistoryBytes > 0 || extra.Layout == store.Packed // whose read cache keeps no large objects
	indexers := usable(o.Indexers)
	opts := []informer.Option{
		informer.Verbatim(), informer.Name(describe), informer.FirstList(source.Any), informer.WatchTimeout(minWatchTimeout),
		informer.Silence(patience), informer.StopTimeout(forever), informer.History(extra.HistoryBytes, extra.HistoryAge),
		informer.OnProblem(s.problem), informer.Logger(slog.New(slog.DiscardHandler)), // problem logs, with klog
		informer.Layout(extra.Layout), informer.Codec(codecFor(exampleOf(example))), informer.ReadCache(extra.ReadCache),
		informer.CrashOnPanic(func() bool { return utilruntime.ReallyCrash }),
	}
	if detectMutations {
		s.written = func(w store.Written) { mutated(describe, w) }
		opts = append(opts, informer.DetectWrites(s.written))
	}
	for name, f := range engineIndexes(indexers, true) {
		opts = append(opts, informer.IndexFunc(name, f))
	}
	engine, err := informer.New[any](src, opts...)
	if err != nil {
		panic(fmt.Errorf("making an informer of %s: %w", describe, err)) // usable has left out what New refuses
	}
	s.engine = engine
	s.indexer = &keyedStore{key: DeletionHandlingMetaNamespaceKeyFunc, shelf: &shelf{
		read: engine.Reader(), write: engine.Amend, addIndexes: engine.AddIndexes, named: true, sizes: src.sizes,
		sourceVersion: engine.Reader().Version, metric: storeGauge(o.Identifier, o.InformerMetricsProvider),
	}}
	s.indexer.indexers.Store(&indexers)
	return s
}

var errStarted = errors.New("informer has already started")

// SetWatchErrorHandler sets who hears of lists and watches that failed.
func (s *sharedIndexInformer) SetWatchErrorHandler(handler clientgo.WatchErrorHandler) error {
	return s.SetWatchErrorHandlerWithContext(func(_ context.Context, r *clientgo.Reflector,
		err error) {
		handler(r, err)
	})
}

// SetWatchErrorHandlerWithContext sets who hears of lists and watches that failed.
// The handler takes client-go's concrete Reflector, so it is given one that has a
// name and a type and does nothing.
func (s *sharedIndexInformer) SetWatchErrorHandlerWithContext(handler clientgo.WatchErrorHandlerWithContext) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started {
		return errStarted
	}
	name := s.engine.Name()
	inert := clientgo.NewReflectorWithOptions(nil, exampleOf(s.example), nil,
		ReflectorOptions{Name: name, TypeDescription: name})
	if handler == nil {
		handler = clientgo.DefaultWatchErrorHandler
	}
	s.tell = func(ctx context.Context, err error) { handler(ctx, inert, err) }
	return nil
}

// SetTransform sets what is done to each object before it is stored.
func (s *sharedIndexInformer) SetTransform(f TransformFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started {
		return errStarted
	}
	s.transform = f
	return nil
}

// Run runs until stopCh is closed.
func (s *sharedIndexInformer) Run(stopCh <-chan struct{}) {
	s.RunWithContext(wait.ContextForChannel(stopCh))
}

// RunWithContext runs until ctx ends, once.
func (s *sharedIndexInformer) RunWithContext(ctx context.Context) {
	defer utilruntime.HandleCrashWithContext(ctx)
	if !s.start(ctx) {
		klog.FromContext(ctx).Info("This informer was run before; a second Run does nothing")
		return
	}
	defer context.AfterFunc(ctx, s.stop)()
	var detecting sync.WaitGroup
	if s.written != nil {
		detecting.Go(func() { s.verify(ctx) })
	}
	if err := s.engine.Run(ctx); err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "The informer ended", "type", s.engine.Name())
	}
	s.stop()
	detecting.Wait()
}

// start fixes what cannot be changed later; false if it was called before.
func (s *sharedIndexInformer) start(ctx context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started {
		return false
	}
	s.started = true
	s.runContext.Store(&ctx)
	s.firstCheck = time.Now().Add(s.check)
	for r := range s.handlers {
		r.setResync(s.check)
	}
	if s.indexer.metric != nil {
		// From now on, without a replay, which would wait for the writer under the lock.
		_, err := s.engine.SubscribeEntries(s.observe, informer.HandlerName("observer"), informer.FromNow())
		utilruntime.Must(err) // it has not run, so it cannot have stopped
	}
	return true
}

func (s *sharedIndexInformer) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	clear(s.handlers)
}

// IsStopped reports whether the informer was stopped.
func (s *sharedIndexInformer) IsStopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped
}

// HasSynced reports whether the first list is in the store.
func (s *sharedIndexInformer) HasSynced() bool { return s.engine.HasSynced() }

// HasSyncedChecker is done when HasSynced is.
func (s *sharedIndexInformer) HasSyncedChecker() DoneChecker {
	return done{name: fmt.Sprintf("SharedIndexInformer %T", s.example), c: s.engine.Synced()}
}

// done is a DoneChecker of a channel.
type done struct {
	name string
	c    <-chan struct{}
}

func (d done) Name() string          { return d.name }
func (d done) Done() <-chan struct{} { return d.c }

// LastSyncResourceVersion is how far the informer has read.
func (s *sharedIndexInformer) LastSyncResourceVersion() string {
	return string(s.engine.Health().Reflector.Version)
}

// GetStore gives the store.
func (s *sharedIndexInformer) GetStore() Store { return s.GetIndexer() }

// GetIndexer gives the store with its indexes. It can be written to, as tests of
// controllers do; handlers are not told, and the next list has the last word.
func (s *sharedIndexInformer) GetIndexer() Indexer { return s.indexer }

// AddIndexers adds indexes, at any time before the stop.
func (s *sharedIndexInformer) AddIndexers(indexers Indexers) error {
	if s.IsStopped() {
		return errors.New("indexer was not added because it has stopped already")
	}
	return s.indexer.AddIndexers(indexers)
}

// GetController gives a Controller that tells of the informer and runs nothing.
func (s *sharedIndexInformer) GetController() Controller { return teller{s} }

// teller is the informer as a Controller.
type teller struct{ *sharedIndexInformer }

// Run does nothing: the informer is run by its owner.
func (teller) Run(<-chan struct{}) {}

// RunWithContext does nothing: the informer is run by its owner.
func (teller) RunWithContext(context.Context) {}
