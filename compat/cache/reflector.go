package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/naming"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/mirador-k8s/mirador/reflector"
	"github.com/mirador-k8s/mirador/source"
)

// Reflector lists and watches into a store. It is the engine's reflector behind
// client-go's methods; unlike the other types of this package it is not an alias,
// because client-go's is a struct with its engine inside.
type Reflector struct {
	// WatchListPageSize is how many objects a list is asked for at a time; 0 leaves
	// the choice to the reflector.
	WatchListPageSize int64
	// ShouldResync says whether a resync that is due takes place; nil means always.
	ShouldResync func() bool
	// MaxInternalErrorRetryDuration is how long a watch that ends with an internal
	// error is opened again without a new list.
	MaxInternalErrorRetryDuration time.Duration

	name            string
	typeDescription string
	resync          time.Duration
	clock           clock.Clock
	logger          klog.Logger
	store           ReflectorStore
	onError         WatchErrorHandlerWithContext

	engine *reflector.Reflector[any]
	sink   *storeSink
	// running: RunWithContext contains panics, as client-go's does; ListAndWatch lets them pass.
	running bool
	// problem is what the last step met, if anything.
	problem *reflector.Problem
}

// WatchErrorHandler hears of lists and watches that failed.
type WatchErrorHandler func(r *Reflector, err error)

// WatchErrorHandlerWithContext is a WatchErrorHandler with the context of the run.
type WatchErrorHandlerWithContext func(ctx context.Context, r *Reflector, err error)

// DefaultWatchErrorHandler logs: an expired version quietly, anything else loudly.
func DefaultWatchErrorHandler(ctx context.Context, r *Reflector, err error) {
	logWatchError(ctx, r.name, r.typeDescription, err)
}

func logWatchError(ctx context.Context, name, typeDescription string, err error) {
	logger := klog.FromContext(ctx)
	switch {
	case isExpired(err):
		logger.V(4).Info("Watch closed", "reflector", name, "type", typeDescription, "err", err)
	case errors.Is(err, io.EOF): // closed as watches are
	case errors.Is(err, io.ErrUnexpectedEOF):
		logger.V(1).Info("Watch cut off", "reflector", name, "type", typeDescription, "err", err)
	default:
		utilruntime.HandleErrorWithContext(ctx, err, "Failed to watch", "reflector", name, "type", typeDescription)
	}
}

// NewReflector makes a reflector that is named after the line that made it.
func NewReflector(lw ListerWatcher, expectedType any, store ReflectorStore, resyncPeriod time.Duration) *Reflector {
	return NewReflectorWithOptions(lw, expectedType, store, ReflectorOptions{ResyncPeriod: resyncPeriod})
}

// NewNamedReflector makes a reflector with a name.
func NewNamedReflector(name string, lw ListerWatcher, expectedType any, store ReflectorStore,
	resyncPeriod time.Duration) *Reflector {
	return NewReflectorWithOptions(lw, expectedType, store, ReflectorOptions{Name: name, ResyncPeriod: resyncPeriod})
}

// NewNamespaceKeyedIndexerAndReflector makes an indexer by namespace and a
// reflector that fills it.
func NewNamespaceKeyedIndexerAndReflector(lw ListerWatcher, expectedType any,
	resyncPeriod time.Duration) (indexer Indexer, reflector *Reflector) {
	indexer = NewIndexer(MetaNamespaceKeyFunc, Indexers{NamespaceIndex: MetaNamespaceIndexFunc})
	return indexer, NewReflector(lw, expectedType, indexer, resyncPeriod)
}

// minWatchTimeout is the shortest time that a watch is asked to last.
const minWatchTimeout = 5 * time.Minute

// patience is how long a list may take to say anything. The caller's function may
// return a whole list at once, and the server may need minutes for a large one.
const patience = 5 * time.Minute

// NewReflectorWithOptions makes a reflector. Only objects of expectedType get into
// the store; nil takes any.
func NewReflectorWithOptions(lw ListerWatcher, expectedType any, store ReflectorStore,
	options ReflectorOptions) *Reflector {
	r := &Reflector{
		name:            options.Name,
		typeDescription: options.TypeDescription,
		resync:          options.ResyncPeriod,
		clock:           options.Clock,
		store:           store,
		onError:         DefaultWatchErrorHandler,
		logger:          klog.Background(),
	}
	if r.name == "" {
		r.name = naming.GetNameFromCallsite("compat/cache/", "client-go/tools/cache/")
	}
	if r.typeDescription == "" {
		r.typeDescription = describeType(expectedType)
	}
	if r.clock == nil {
		r.clock = clock.RealClock{}
	}
	if options.Logger != nil {
		r.logger = *options.Logger
	}
	r.logger = klog.LoggerWithName(r.logger, r.name)

	src := newSource(lw, expectedType, r.typeDescription)
	src.pageSize = func() int64 { return r.WatchListPageSize }
	src.contains = func() bool { return r.running }
	src.bearsInternal = func() bool { return r.MaxInternalErrorRetryDuration > 0 }
	src.key = func(obj any) (string, error) { // the store has its own; this one only tells objects apart
		key, err := DeletionHandlingMetaNamespaceKeyFunc(obj)
		if err != nil {
			return "", nil
		}
		return key, nil
	}
	r.sink = &storeSink{store: store, report: r.storeFailed, contains: src.contains}
	engine, err := reflector.New(reflector.Options[any]{
		Source: src, Sink: r.sink,
		FirstList: source.Any, TrustOrder: true,
		WatchTimeout: max(minWatchTimeout, options.MinWatchTimeout),
		Silence:      patience,
		Backoff:      backoffOf(options.Backoff),
		OnProblem:    func(p reflector.Problem) { r.problem = &p },
	})
	if err != nil {
		panic(fmt.Errorf("making a reflector: %w", err)) // only a missing source or sink is refused
	}
	r.engine = engine
	return r
}

// describeType names a type of objects: an unstructured one by its kind.
func describeType(example any) string {
	if example == nil {
		return "<unspecified>"
	}
	if u, ok := example.(*unstructured.Unstructured); ok && u != nil {
		if gvk := u.GroupVersionKind(); !gvk.Empty() {
			return gvk.String()
		}
	}
	return reflect.TypeOf(example).String()
}

// backoffOf turns the caller's backoff into the engine's; nil is the default, which
// both share.
func backoffOf(b *wait.Backoff) reflector.Backoff {
	if b == nil {
		return reflector.Backoff{}
	}
	jitter := b.Jitter
	return reflector.Backoff{First: b.Duration, Most: b.Cap, Factor: b.Factor,
		Rand: func() float64 { return jitter * rand.Float64() }}
}

// Name is the reflector's name.
func (r *Reflector) Name() string { return r.name }

// TypeDescription names the type of the objects.
func (r *Reflector) TypeDescription() string { return r.typeDescription }

// LastSyncResourceVersion is how far the reflector has read.
func (r *Reflector) LastSyncResourceVersion() string { return string(r.engine.Health().Version) }

// Run lists and watches until stopCh is closed.
func (r *Reflector) Run(stopCh <-chan struct{}) { r.RunWithContext(wait.ContextForChannel(stopCh)) }

// RunWithContext lists and watches until ctx ends, whatever the server does.
func (r *Reflector) RunWithContext(ctx context.Context) {
	logger := klog.FromContext(ctx)
	logger.V(3).Info("Starting reflector", "type", r.typeDescription, "resyncPeriod", r.resync, "reflector", r.name)
	defer logger.V(3).Info("Stopping reflector", "type", r.typeDescription, "reflector", r.name)
	r.running = true
	defer func() { r.running = false }()
	for again := true; ctx.Err() == nil; {
		out := r.iterate(ctx, again)
		if out.err != nil && !isCrash(out.err) {
			r.failed(ctx, out.err)
		}
		again = !out.keepPlace
		if !r.pause(ctx, out.wait) {
			return
		}
	}
}

// failed calls the error handler.
func (r *Reflector) failed(ctx context.Context, err error) {
	defer utilruntime.HandleCrashWithContext(ctx)
	r.onError(ctx, r, err)
}

// ListAndWatch lists, then watches until something goes wrong or stopCh is closed.
func (r *Reflector) ListAndWatch(stopCh <-chan struct{}) error {
	return r.ListAndWatchWithContext(wait.ContextForChannel(stopCh))
}

// ListAndWatchWithContext lists, then watches until something goes wrong or ctx
// ends. Its error tells of a list or of a watch that could not be opened; a watch
// that was open and ended is no error.
func (r *Reflector) ListAndWatchWithContext(ctx context.Context) error {
	return r.iterate(ctx, true).err
}

// pause waits; false if ctx ended first.
func (r *Reflector) pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := r.clock.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C():
		return true
	}
}

func (r *Reflector) storeFailed(doing string, err error) {
	utilruntime.HandleErrorWithLogger(r.logger, err, "The store refused an object", "doing", doing, "type",
		r.typeDescription, "reflector", r.name)
}

// resyncing gives the store its Resync from time to time, until ctx ends. An error
// ends the iteration.
func (r *Reflector) resyncing(ctx context.Context, failed func(error)) {
	for r.pause(ctx, r.resync) {
		if r.ShouldResync != nil && !r.ShouldResync() {
			continue
		}
		if err := r.store.Resync(); err != nil {
			failed(fmt.Errorf("resync: %w", err))
			return
		}
	}
}

// resyncer starts resyncing once, and ends with its iteration.
type resyncer struct {
	once sync.Once
	wg   sync.WaitGroup
}

func (s *resyncer) start(run func()) { s.once.Do(func() { s.wg.Go(run) }) }
