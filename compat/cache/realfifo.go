package cache

import (
	"fmt"
	"sync"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// realBatch is how many deltas PopBatch gives at most.
const realBatch = 1000

// RealFIFO is a queue of single deltas in the order of their arrival: nothing is
// accumulated, nothing dropped.
//
// With AtomicEvents a whole Replace is one delta, ReplacedAll, and a Resync is
// SyncAll; whoever processes them knows what is stored.
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

// NewRealFIFO makes an empty queue that compares with known objects on Replace.
func NewRealFIFO(keyFunc KeyFunc, knownObjects KeyListerGetter, transformer TransformFunc) *RealFIFO {
	return NewRealFIFOWithOptions(RealFIFOOptions{KeyFunction: keyFunc, KnownObjects: knownObjects,
		Transformer: transformer})
}

// NewRealFIFOWithOptions makes an empty queue. It panics on options that
// contradict each other, as client-go's does: that is a mistake of the program.
func NewRealFIFOWithOptions(opts RealFIFOOptions) *RealFIFO {
	switch {
	case opts.AtomicEvents && opts.KnownObjects != nil:
		panic("RealFIFO: AtomicEvents and KnownObjects exclude each other: whoever processes the events knows what is stored")
	case !opts.AtomicEvents && opts.KnownObjects == nil:
		panic("RealFIFO: without AtomicEvents it needs KnownObjects to find deletions")
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

// ready gives an object its final form before it is queued. Tombstones and what is
// given again went through the transform before.
func (f *RealFIFO) ready(obj any, again bool) (any, error) {
	if _, err := f.keyOf(obj); err != nil {
		return nil, KeyError{Obj: obj, Err: err}
	}
	if again || f.opts.Transformer == nil || isTombstone(obj) {
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
	f.metrics.waiting(len(f.items))
}

func (f *RealFIFO) put(t DeltaType, obj any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.initial.begin(0)
	obj, err := f.ready(obj, false)
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

// Delete queues an object as Deleted, known or not.
func (f *RealFIFO) Delete(obj any) error { return f.put(Deleted, obj) }

// Bookmark queues a version, where that was asked for.
func (f *RealFIFO) Bookmark(resourceVersion string) error {
	if !f.opts.EmitDeltaTypeBookmark {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.push(Bookmark, BookmarkInfo{ResourceVersion: resourceVersion})
	return nil
}

// Replace queues list as all there is. If one of its objects has no key or cannot
// be transformed, nothing of it is queued.
func (f *RealFIFO) Replace(list []any, resourceVersion string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	objs := make([]any, len(list))
	for i, obj := range list {
		var err error
		if objs[i], err = f.ready(obj, false); err != nil {
			return err
		}
	}
	if f.opts.AtomicEvents {
		f.push(ReplacedAll, ReplacedAllInfo{ResourceVersion: resourceVersion, Objects: objs})
	} else {
		gone, err := f.missing(objs)
		if err != nil {
			return err
		}
		for _, d := range gone {
			f.push(Deleted, d)
		}
		for _, obj := range objs {
			f.push(Replaced, obj)
		}
	}
	f.initial.begin(len(f.items))
	return nil
}

// missing finds what is queued or known and not in a list.
func (f *RealFIFO) missing(objs []any) (gone []DeletedFinalStateUnknown, err error) {
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
			gone = append(gone, DeletedFinalStateUnknown{Key: key, Obj: d.Object})
		}
	}
	for _, key := range f.opts.KnownObjects.ListKeys() {
		if _, queued := last[key]; queued || listed[key] {
			continue
		}
		gone = append(gone, DeletedFinalStateUnknown{Key: key, Obj: lastKnown(f.logger, f.opts.KnownObjects, key)})
	}
	return gone, nil
}

// lastKnown looks up what known objects list; nil where they cannot give it.
func lastKnown(logger klog.Logger, known KeyGetter, key string) any {
	obj, exists, err := known.GetByKey(key)
	if err != nil || !exists {
		utilruntime.HandleErrorWithLogger(logger, err,
			"A known object is listed but not found; its deletion is told without its last state", "key", key)
		return nil
	}
	return obj
}

// Resync queues every known object for which nothing waits.
func (f *RealFIFO) Resync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.opts.AtomicEvents {
		f.push(SyncAll, SyncAllInfo{})
		return nil
	}
	waits := make(map[string]bool, len(f.items))
	for _, d := range f.items {
		key, err := f.keyOf(d)
		if err != nil {
			return KeyError{Obj: d.Object, Err: err}
		}
		waits[key] = true
	}
	for _, key := range f.opts.KnownObjects.ListKeys() {
		if waits[key] {
			continue
		}
		obj, exists, err := f.opts.KnownObjects.GetByKey(key)
		if err != nil || !exists {
			utilruntime.HandleErrorWithLogger(f.logger, err,
				"A known object is listed but not found; it is left out of the resync", "key", key)
			continue
		}
		if obj, err = f.ready(obj, true); err != nil {
			return err
		}
		f.push(Sync, obj)
	}
	return nil
}

// Close lets Pop fail once the queue is empty.
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

// HasSynced reports whether the first Replace was processed, or something else was
// queued first.
func (f *RealFIFO) HasSynced() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.initial.done
}

// HasSyncedChecker is done when HasSynced is.
func (f *RealFIFO) HasSyncedChecker() DoneChecker { return f }

// Name names the queue.
func (f *RealFIFO) Name() string { return f.name }

// Done is closed when HasSynced turns true.
func (f *RealFIFO) Done() <-chan struct{} { return f.initial.synced }

// Transformer is what is applied to each object.
func (f *RealFIFO) Transformer() TransformFunc { return f.opts.Transformer }
