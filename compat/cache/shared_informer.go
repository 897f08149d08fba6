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

// minResync is the shortest resync period.
const minResync = time.Second

// forever is the engine's stop timeout: client-go's Run waits for callbacks without a
// limit.
const forever = 100 * 365 * 24 * time.Hour

// sharedIndexInformer is a SharedIndexInformer: the engine's informer with client-go's
// methods.
//
// Locking: mu is never held while waiting for the engine's writer, as taking a snapshot, adding a handler with a
// replay and adding an index do. And nothing that the writer calls, such as problem, takes mu.
type sharedIndexInformer struct {
	engine  *informer.Informer[any]
	indexer *keyedStore
	example runtime.Object
	options Options

	// runContext is the context that error handlers are called with.
	runContext atomic.Pointer[context.Context]

	mu               sync.Mutex // see above
	started, stopped bool
	defaultResync    time.Duration
	check            time.Duration // the resync check period; 0: no resyncs
	firstCheck       time.Time     // set at the start
	transform        TransformFunc
	// reportError is called with the errors of lists and watches. Its type is not
	// client-go's handler type: that would be reachable by reflection from this field,
	// and the linker would keep client-go's Reflector in the program.
	reportError func(ctx context.Context, err error)
	handlers    map[*registration]struct{}
	written     func(store.Written) // nil if writes are not detected
}

var _ SharedIndexInformer = &sharedIndexInformer{}

// NewSharedInformer returns a shared informer without indexes.
func NewSharedInformer(lw ListerWatcher, exampleObject runtime.Object,
	defaultEventHandlerResyncPeriod time.Duration) SharedInformer {
	return With(Options{}).NewSharedInformer(lw, exampleObject, defaultEventHandlerResyncPeriod)
}

// NewSharedIndexInformer returns a shared informer.
func NewSharedIndexInformer(lw ListerWatcher, exampleObject runtime.Object,
	defaultEventHandlerResyncPeriod time.Duration, indexers Indexers) SharedIndexInformer {
	return With(Options{}).NewSharedIndexInformer(lw, exampleObject, defaultEventHandlerResyncPeriod, indexers)
}

// NewSharedIndexInformerWithOptions returns a shared informer.
func NewSharedIndexInformerWithOptions(lw ListerWatcher, exampleObject runtime.Object,
	options SharedIndexInformerOptions) SharedIndexInformer {
	return With(Options{}).NewSharedIndexInformerWithOptions(lw, exampleObject, options)
}

func newSharedIndexInformer(lw ListerWatcher, example runtime.Object, o SharedIndexInformerOptions,
	options Options) *sharedIndexInformer {
	describe := o.ObjectDescription
	if describe == "" {
		describe = describeType(exampleOf(example))
	}
	s := &sharedIndexInformer{
		example:       example,
		options:       options,
		defaultResync: o.ResyncPeriod,
		check:         o.ResyncPeriod,
		reportError:   func(ctx context.Context, err error) { logWatchError(ctx, describe, describe, err) },
		handlers:      map[*registration]struct{}{},
	}
	s.runContext.Store(new(context.Background()))
	src := newSource(lw, exampleOf(example), describe)
	src.transform = func() TransformFunc { return s.transform }
	src.sizes = options.HistoryBytes > 0 || options.Layout == store.Packed // whose read cache skips large objects
	indexers := usable(o.Indexers)
	if detectMutations {
		s.written = func(w store.Written) { mutated(describe, w) }
	}
	engine, err := informer.New(src, &informer.Options[any]{
		Name:         describe,
		Verbatim:     true,
		Indexes:      engineIndexes(indexers, true),
		Layout:       options.Layout,
		Codec:        codecFor(exampleOf(example)),
		ReadCache:    options.ReadCache,
		HistoryBytes: options.HistoryBytes,
		HistoryAge:   options.HistoryAge,
		DetectWrites: s.written,
		FirstList:    source.Any,
		WatchTimeout: minWatchTimeout,
		Silence:      silenceTimeout,
		StopTimeout:  forever,
		CrashOnPanic: func() bool { return utilruntime.ReallyCrash },
		OnProblem:    s.problem,
		Logger:       slog.New(slog.DiscardHandler), // OnProblem logs with klog
	})
	if err != nil {
		panic(fmt.Errorf("making an informer of %s: %w", describe, err)) // usable has left out what New refuses
	}
	s.engine = engine
	s.indexer = &keyedStore{key: DeletionHandlingMetaNamespaceKeyFunc, indexedStore: &indexedStore{
		read: engine.Reader(), write: engine.Amend, addIndexes: engine.AddIndexes, metaKeys: true, sizes: src.sizes,
		sourceVersion: engine.Reader().Version, metric: storeGauge(o.Identifier, o.InformerMetricsProvider),
	}}
	s.indexer.indexers.Store(&indexers)
	return s
}

var errStarted = errors.New("informer has already started")

// SetWatchErrorHandler sets the handler of the errors of lists and watches.
func (s *sharedIndexInformer) SetWatchErrorHandler(handler clientgo.WatchErrorHandler) error {
	return s.SetWatchErrorHandlerWithContext(func(_ context.Context, r *clientgo.Reflector,
		err error) {
		handler(r, err)
	})
}

// SetWatchErrorHandlerWithContext sets the handler of the errors of lists and watches.
// The handler takes client-go's Reflector, so it receives one that has a name and a type
// and does nothing.
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
	s.reportError = func(ctx context.Context, err error) { handler(ctx, inert, err) }
	return nil
}

// SetTransform sets the transform that is applied to each object before it is stored.
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
		klog.FromContext(ctx).Info("The informer has already been run; a second Run does nothing")
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

// start fixes the settings that cannot be changed later. It returns false if it was
// called before.
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
		// Without a replay, which would wait for the writer under the lock.
		_, err := s.engine.SubscribeEntries(s.observe, &informer.HandlerOptions{Name: "observer", FromNow: true})
		utilruntime.Must(err) // the engine has not run, so it cannot have stopped
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

// HasSyncedChecker returns a checker that is done when HasSynced is true.
func (s *sharedIndexInformer) HasSyncedChecker() DoneChecker {
	return done{name: fmt.Sprintf("SharedIndexInformer %T", s.example), c: s.engine.Synced()}
}

// done is a DoneChecker that is done when a channel is closed.
type done struct {
	name string
	c    <-chan struct{}
}

func (d done) Name() string          { return d.name }
func (d done) Done() <-chan struct{} { return d.c }

// LastSyncResourceVersion returns the version that the informer has reached.
func (s *sharedIndexInformer) LastSyncResourceVersion() string {
	return string(s.engine.Health().Reflector.Version)
}

// GetStore returns the store.
func (s *sharedIndexInformer) GetStore() Store { return s.GetIndexer() }

// GetIndexer returns the store with its indexes. Tests of controllers may write to it.
// Such a write causes no event, and the next list overwrites it.
func (s *sharedIndexInformer) GetIndexer() Indexer { return s.indexer }

// AddIndexers adds indexes. It fails after the stop.
func (s *sharedIndexInformer) AddIndexers(indexers Indexers) error {
	if s.IsStopped() {
		return errors.New("indexer was not added because it has stopped already")
	}
	return s.indexer.AddIndexers(indexers)
}

// GetController returns a Controller that reports the informer's state and runs nothing.
func (s *sharedIndexInformer) GetController() Controller { return informerController{s} }

// informerController adapts the informer to Controller.
type informerController struct{ *sharedIndexInformer }

// Run does nothing: the caller runs the informer itself.
func (informerController) Run(<-chan struct{}) {}

// RunWithContext does nothing: the caller runs the informer itself.
func (informerController) RunWithContext(context.Context) {}
