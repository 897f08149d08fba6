package cache

import (
	"fmt"
	"sync"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// maxBatch is how many deltas PopBatch returns at most.
const maxBatch = 1000

// RealFIFO is a queue of single deltas in the order of their arrival. Deltas are neither
// grouped by object nor coalesced.
//
// With AtomicEvents a whole Replace is one ReplacedAll delta, and a Resync is one
// SyncAll delta; the consumer compares them with its store.
type RealFIFO struct {
	opts    RealFIFOOptions
	name    string
	logger  klog.Logger
	metrics queueMetrics

	mu      sync.Mutex
	arrived sync.Cond
	items   []Delta
	closed  bool
	initial initialSync
}

var (
	_ QueueWithBatch         = &RealFIFO{}
	_ TransformingStore      = &RealFIFO{}
	_ ReflectorBookmarkStore = &RealFIFO{}
	_ DoneChecker            = &RealFIFO{}
)

// NewRealFIFO returns an empty queue whose Replace finds deletions by knownObjects.
func NewRealFIFO(keyFunc KeyFunc, knownObjects KeyListerGetter, transformer TransformFunc) *RealFIFO {
	return NewRealFIFOWithOptions(RealFIFOOptions{KeyFunction: keyFunc, KnownObjects: knownObjects,
		Transformer: transformer})
}

// NewRealFIFOWithOptions returns an empty queue. It panics on contradictory options, as
// client-go's does.
func NewRealFIFOWithOptions(opts RealFIFOOptions) *RealFIFO {
	switch {
	case opts.AtomicEvents && opts.KnownObjects != nil:
		panic("RealFIFO: AtomicEvents and KnownObjects exclude each other: the consumer compares with its store")
	case !opts.AtomicEvents && opts.KnownObjects == nil:
		panic("RealFIFO: KnownObjects is needed to find deletions, unless AtomicEvents is set")
	case !opts.AtomicEvents && (opts.UnlockWhileProcessing || opts.EmitDeltaTypeBookmark):
		panic("RealFIFO: UnlockWhileProcessing and EmitDeltaTypeBookmark need AtomicEvents")
	}
	if opts.KeyFunction == nil {
		opts.KeyFunction = MetaNamespaceKeyFunc
	}
	f := &RealFIFO{opts: opts, name: "RealFIFO", logger: klog.Background(), initial: newInitialSync(),
		metrics: newQueueMetrics(opts.Identifier, opts.MetricsProvider)}
	if opts.Name != "" {
		f.name = opts.Name
	}
	if n := opts.Identifier.Name(); n != "" {
		f.name = n
	}
	if opts.Logger != nil {
		f.logger = *opts.Logger
	}
	f.logger = klog.LoggerWithName(f.logger, f.name)
	f.arrived.L = &f.mu
	return f
}

func (f *RealFIFO) keyOf(obj any) (string, error) { return keyOfQueued(f.opts.KeyFunction, obj) }

// prepare checks an object's key and transforms the object before it is queued.
// Tombstones are already transformed.
func (f *RealFIFO) prepare(obj any, transformed bool) (any, error) {
	if _, err := f.keyOf(obj); err != nil {
		return nil, KeyError{Obj: obj, Err: err}
	}
	if transformed || f.opts.Transformer == nil || isTombstone(obj) {
		return obj, nil
	}
	out, err := f.opts.Transformer(obj)
	if err != nil {
		return nil, fmt.Errorf("transforming a %T: %w", obj, err)
	}
	if _, err := f.keyOf(out); err != nil {
		return nil, KeyError{Obj: out, Err: fmt.Errorf("after the transform: %w", err)}
	}
	return out, nil
}

func (f *RealFIFO) push(t DeltaType, obj any) {
	f.items = append(f.items, Delta{Type: t, Object: obj})
	f.arrived.Broadcast()
	f.metrics.setDepth(len(f.items))
}

func (f *RealFIFO) put(t DeltaType, obj any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.initial.begin(0)
	obj, err := f.prepare(obj, false)
	if err != nil {
		return err
	}
	f.push(t, obj)
	return nil
}

// Add queues an object as Added.
func (f *RealFIFO) Add(obj any) error { return f.put(Added, obj) }

// Update queues an object as Updated.
func (f *RealFIFO) Update(obj any) error { return f.put(Updated, obj) }

// Delete queues an object as Deleted, whether it is known or not.
func (f *RealFIFO) Delete(obj any) error { return f.put(Deleted, obj) }

// Bookmark queues a version, if EmitDeltaTypeBookmark is set.
func (f *RealFIFO) Bookmark(resourceVersion string) error {
	if !f.opts.EmitDeltaTypeBookmark {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.push(Bookmark, BookmarkInfo{ResourceVersion: resourceVersion})
	return nil
}

// Replace queues the objects of list, and deletions of what is missing from it. If an
// object has no key or cannot be transformed, nothing is queued.
func (f *RealFIFO) Replace(list []any, resourceVersion string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	objs := make([]any, len(list))
	for i, obj := range list {
		var err error
		if objs[i], err = f.prepare(obj, false); err != nil {
			return err
		}
	}
	if f.opts.AtomicEvents {
		f.push(ReplacedAll, ReplacedAllInfo{ResourceVersion: resourceVersion, Objects: objs})
	} else {
		deleted, err := f.missing(objs)
		if err != nil {
			return err
		}
		for _, d := range deleted {
			f.push(Deleted, d)
		}
		for _, obj := range objs {
			f.push(Replaced, obj)
		}
	}
	f.initial.begin(len(f.items))
	return nil
}

// missing returns the objects that are queued or known, and not in a list.
func (f *RealFIFO) missing(objs []any) (deleted []DeletedFinalStateUnknown, err error) {
	listed := make(map[string]bool, len(objs))
	for _, obj := range objs {
		key, err := f.keyOf(obj)
		if err != nil {
			return nil, KeyError{Obj: obj, Err: err}
		}
		listed[key] = true
	}
	var order []string
	last := map[string]Delta{}
	for _, d := range f.items {
		key, err := f.keyOf(d)
		if err != nil {
			return nil, KeyError{Obj: d.Object, Err: err}
		}
		if _, seen := last[key]; !seen {
			order = append(order, key)
		}
		last[key] = d
	}
	for _, key := range order {
		if d := last[key]; !listed[key] && d.Type != Deleted {
			deleted = append(deleted, DeletedFinalStateUnknown{Key: key, Obj: d.Object})
		}
	}
	for _, key := range f.opts.KnownObjects.ListKeys() {
		if _, queued := last[key]; queued || listed[key] {
			continue
		}
		deleted = append(deleted, DeletedFinalStateUnknown{Key: key, Obj: lastKnown(f.logger, f.opts.KnownObjects, key)})
	}
	return deleted, nil
}

// lastKnown returns the known object with a key, or nil if it cannot be read.
func lastKnown(logger klog.Logger, known KeyGetter, key string) any {
	obj, exists, err := known.GetByKey(key)
	if err != nil || !exists {
		utilruntime.HandleErrorWithLogger(logger, err,
			"A known object is listed but not found; its deletion has no last state", "key", key)
		return nil
	}
	return obj
}

// Resync queues every known object for which nothing is queued.
func (f *RealFIFO) Resync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.opts.AtomicEvents {
		f.push(SyncAll, SyncAllInfo{})
		return nil
	}
	queued := make(map[string]bool, len(f.items))
	for _, d := range f.items {
		key, err := f.keyOf(d)
		if err != nil {
			return KeyError{Obj: d.Object, Err: err}
		}
		queued[key] = true
	}
	for _, key := range f.opts.KnownObjects.ListKeys() {
		if queued[key] {
			continue
		}
		obj, exists, err := f.opts.KnownObjects.GetByKey(key)
		if err != nil || !exists {
			utilruntime.HandleErrorWithLogger(f.logger, err,
				"A known object is listed but not found; it is left out of the resync", "key", key)
			continue
		}
		if obj, err = f.prepare(obj, true); err != nil {
			return err
		}
		f.push(Sync, obj)
	}
	return nil
}

// Close makes Pop fail once the queue is empty.
func (f *RealFIFO) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.arrived.Broadcast()
}

// IsClosed reports whether Close was called.
func (f *RealFIFO) IsClosed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// HasSynced reports whether the items of the first Replace were processed, or
// something else was queued before any Replace.
func (f *RealFIFO) HasSynced() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.initial.done
}

// HasSyncedChecker returns a checker that is done when HasSynced is true.
func (f *RealFIFO) HasSyncedChecker() DoneChecker { return f }

// Name returns the name of the queue.
func (f *RealFIFO) Name() string { return f.name }

// Done returns a channel that is closed when HasSynced becomes true.
func (f *RealFIFO) Done() <-chan struct{} { return f.initial.synced }

// Transformer returns the transform that is applied to each object.
func (f *RealFIFO) Transformer() TransformFunc { return f.opts.Transformer }
