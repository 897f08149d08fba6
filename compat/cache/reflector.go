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

// Reflector lists and watches into a store. It is the engine's reflector with
// client-go's methods. It cannot be an alias, because client-go's Reflector is a struct
// that contains client-go's implementation.
type Reflector struct {
	// WatchListPageSize is the page size of lists; with 0 the reflector chooses it.
	WatchListPageSize int64
	// ShouldResync reports whether a resync that is due takes place; nil means always.
	ShouldResync func() bool
	// MaxInternalErrorRetryDuration is the time during which a watch that ends with an
	// internal error is reopened without a relist.
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
	// running: RunWithContext recovers panics, as client-go's does; ListAndWatch does not.
	running bool
	// problem is the problem of the last step, or nil.
	problem *reflector.Problem
}

// WatchErrorHandler is called with the errors of lists and watches.
type WatchErrorHandler func(r *Reflector, err error)

// WatchErrorHandlerWithContext is a WatchErrorHandler with the context of the run.
type WatchErrorHandlerWithContext func(ctx context.Context, r *Reflector, err error)

// DefaultWatchErrorHandler logs an expired version at a high verbosity, and any other
// error as an error.
func DefaultWatchErrorHandler(ctx context.Context, r *Reflector, err error) {
	logWatchError(ctx, r.name, r.typeDescription, err)
}

func logWatchError(ctx context.Context, name, typeDescription string, err error) {
	logger := klog.FromContext(ctx)
	switch {
	case isExpired(err):
		logger.V(4).Info("Watch closed", "reflector", name, "type", typeDescription, "err", err)
	case errors.Is(err, io.EOF): // a watch ended normally
	case errors.Is(err, io.ErrUnexpectedEOF):
		logger.V(1).Info("Watch cut off", "reflector", name, "type", typeDescription, "err", err)
	default:
		utilruntime.HandleErrorWithContext(ctx, err, "Failed to watch", "reflector", name, "type", typeDescription)
	}
}

// NewReflector returns a reflector that is named after the file and line of the caller.
func NewReflector(lw ListerWatcher, expectedType any, store ReflectorStore, resyncPeriod time.Duration) *Reflector {
	return NewReflectorWithOptions(lw, expectedType, store, ReflectorOptions{ResyncPeriod: resyncPeriod})
}

// NewNamedReflector returns a reflector with a name.
func NewNamedReflector(name string, lw ListerWatcher, expectedType any, store ReflectorStore,
	resyncPeriod time.Duration) *Reflector {
	return NewReflectorWithOptions(lw, expectedType, store, ReflectorOptions{Name: name, ResyncPeriod: resyncPeriod})
}

// NewNamespaceKeyedIndexerAndReflector returns an indexer by namespace and a reflector
// that fills it.
func NewNamespaceKeyedIndexerAndReflector(lw ListerWatcher, expectedType any,
	resyncPeriod time.Duration) (indexer Indexer, reflector *Reflector) {
	indexer = NewIndexer(MetaNamespaceKeyFunc, Indexers{NamespaceIndex: MetaNamespaceIndexFunc})
	return indexer, NewReflector(lw, expectedType, indexer, resyncPeriod)
}

// minWatchTimeout is the shortest timeout that a watch is opened with.
const minWatchTimeout = 5 * time.Minute

// silenceTimeout is how long a list may take before it returns anything. The caller's
// function may return a whole list at once, for which a server may need minutes.
const silenceTimeout = 5 * time.Minute

// NewReflectorWithOptions returns a reflector. Only objects of expectedType are stored;
// nil accepts any type.
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
	src.recovers = func() bool { return r.running }
	src.retriesInternalErrors = func() bool { return r.MaxInternalErrorRetryDuration > 0 }
	src.key = func(obj any) (string, error) { // only to tell objects apart: the store has its own KeyFunc
		key, err := DeletionHandlingMetaNamespaceKeyFunc(obj)
		if err != nil {
			return "", nil
		}
		return key, nil
	}
	r.sink = &storeSink{store: store, report: r.storeFailed, recovers: src.recovers}
	engine, err := reflector.New(reflector.Options[any]{
		Source: src, Sink: r.sink,
		FirstList: source.Any, TrustOrder: true,
		WatchTimeout: max(minWatchTimeout, options.MinWatchTimeout),
		Silence:      silenceTimeout,
		Backoff:      backoffOf(options.Backoff),
		OnProblem:    func(p reflector.Problem) { r.problem = &p },
	})
	if err != nil {
		panic(fmt.Errorf("making a reflector: %w", err)) // only a missing source or sink is refused
	}
	r.engine = engine
	return r
}

// describeType returns the name of an object's type, or the kind of an unstructured object.
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

// backoffOf converts the caller's backoff into the engine's; nil means the default, which
// is the same in both.
func backoffOf(b *wait.Backoff) reflector.Backoff {
	if b == nil {
		return reflector.Backoff{}
	}
	jitter := b.Jitter
	return reflector.Backoff{First: b.Duration, Most: b.Cap, Factor: b.Factor,
		Rand: func() float64 { return jitter * rand.Float64() }}
}

// Name returns the reflector's name.
func (r *Reflector) Name() string { return r.name }

// TypeDescription returns the name of the objects' type.
func (r *Reflector) TypeDescription() string { return r.typeDescription }

// LastSyncResourceVersion returns the version that the reflector has reached.
func (r *Reflector) LastSyncResourceVersion() string { return string(r.engine.Health().Version) }

// Run lists and watches until stopCh is closed.
func (r *Reflector) Run(stopCh <-chan struct{}) { r.RunWithContext(wait.ContextForChannel(stopCh)) }

// RunWithContext lists and watches until ctx ends. It retries after every error.
func (r *Reflector) RunWithContext(ctx context.Context) {
	logger := klog.FromContext(ctx)
	logger.V(3).Info("Starting reflector", "type", r.typeDescription, "resyncPeriod", r.resync, "reflector", r.name)
	defer logger.V(3).Info("Stopping reflector", "type", r.typeDescription, "reflector", r.name)
	r.running = true
	defer func() { r.running = false }()
	for relist := true; ctx.Err() == nil; {
		out := r.iterate(ctx, relist)
		if out.err != nil && !isPanic(out.err) {
			r.failed(ctx, out.err)
		}
		relist = !out.resume
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

// ListAndWatchWithContext lists, then watches until something goes wrong or ctx ends. It
// returns the error of a list or of a watch that could not be opened. The end of an open
// watch is not an error.
func (r *Reflector) ListAndWatchWithContext(ctx context.Context) error {
	return r.iterate(ctx, true).err
}

// pause waits for d. It returns false if ctx ended first.
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
	utilruntime.HandleErrorWithLogger(r.logger, err, "The reflector did not update its store", "doing", doing, "type",
		r.typeDescription, "reflector", r.name)
}

// resyncing calls the store's Resync periodically until ctx ends. An error ends the
// iteration.
func (r *Reflector) resyncing(ctx context.Context, failed func(error)) {
	for r.pause(ctx, r.resync) {
		if r.ShouldResync != nil && !r.ShouldResync() {
			continue
		}
		if err := r.store.Resync(); err != nil {
			r.storeFailed("resync", err)
			failed(err)
			return
		}
	}
}

// resyncer starts resyncing at most once per iteration.
type resyncer struct {
	once sync.Once
	wg   sync.WaitGroup
}

func (s *resyncer) start(run func()) { s.once.Do(func() { s.wg.Go(run) }) }
