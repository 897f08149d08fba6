package cache

import (
	"errors"
	"fmt"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/queue"
)

// DeltaFIFO is the engine's DeltaFIFO under client-go's names. It also has the methods
// that client-go removed in 0.33: Get, GetByKey, List, ListKeys, AddIfNotPresent.
type DeltaFIFO struct {
	name      string
	keyFunc   KeyFunc
	transform TransformFunc
	queue     *queue.DeltaFIFO[any]
}

var (
	_ Queue             = &DeltaFIFO{}
	_ TransformingStore = &DeltaFIFO{}
	_ DoneChecker       = &DeltaFIFO{}
)

// NewDeltaFIFO returns an empty queue in which the objects of a Replace are Sync deltas.
func NewDeltaFIFO(keyFunc KeyFunc, knownObjects KeyListerGetter) *DeltaFIFO {
	return NewDeltaFIFOWithOptions(DeltaFIFOOptions{KeyFunction: keyFunc, KnownObjects: knownObjects})
}

// NewDeltaFIFOWithOptions returns an empty queue.
func NewDeltaFIFOWithOptions(opts DeltaFIFOOptions) *DeltaFIFO {
	f := &DeltaFIFO{name: "DeltaFIFO", keyFunc: MetaNamespaceKeyFunc, transform: opts.Transformer}
	if opts.KeyFunction != nil {
		f.keyFunc = opts.KeyFunction
	}
	if opts.Name != "" {
		f.name = opts.Name
	}
	logger := klog.Background()
	if opts.Logger != nil {
		logger = *opts.Logger
	}
	logger = klog.LoggerWithName(logger, f.name)
	o := queue.Options[any]{
		Key:          f.KeyOf,
		EmitReplaced: opts.EmitDeltaTypeReplaced,
		Tombstone:    tombstone,
		Inferred:     isTombstone,
		OnError: func(err error) {
			utilruntime.HandleErrorWithLogger(logger, err, "KnownObjects lists a key that it does not have")
		},
	}
	if opts.KnownObjects != nil { // a converted nil interface would not be nil
		o.Known = opts.KnownObjects
	}
	if opts.Transformer != nil {
		o.Transform = opts.Transformer
	}
	q, err := queue.NewDeltaFIFO(o)
	if err != nil {
		panic(fmt.Errorf("making a DeltaFIFO: %w", err)) // only a missing Key is refused
	}
	f.queue = q
	return f
}

// tombstone returns the representation of an object whose deletion was missed. A
// tombstone is returned as it is.
func tombstone(key string, last any) any {
	if isTombstone(last) {
		return last
	}
	return DeletedFinalStateUnknown{Key: key, Obj: last}
}

func isTombstone(obj any) bool {
	_, is := obj.(DeletedFinalStateUnknown)
	return is
}

// KeyOf returns the key of an object, of Deltas or of a DeletedFinalStateUnknown.
func (f *DeltaFIFO) KeyOf(obj any) (string, error) { return keyOfQueued(f.keyFunc, obj) }

// keyOfQueued extends a KeyFunc to everything that a queue of deltas contains.
func keyOfQueued(key KeyFunc, obj any) (string, error) {
	switch o := obj.(type) {
	case Deltas:
		if len(o) == 0 {
			return "", KeyError{Obj: obj, Err: ErrZeroLengthDeltasObject}
		}
		obj = o.Newest().Object
	case Delta:
		obj = o.Object
	}
	if d, ok := obj.(DeletedFinalStateUnknown); ok {
		return d.Key, nil
	}
	return key(obj)
}

// clientGoError returns client-go's equivalent of an error of the engine.
func clientGoError(err error) error {
	if errors.Is(err, queue.ErrClosed) {
		return ErrFIFOClosed
	}
	if k, ok := errors.AsType[queue.KeyError](err); ok {
		return KeyError{Obj: k.Obj, Err: k.Err}
	}
	return err
}

// Add queues an object as Added.
func (f *DeltaFIFO) Add(obj any) error { return clientGoError(f.queue.Add(obj)) }

// Update queues an object as Updated.
func (f *DeltaFIFO) Update(obj any) error { return clientGoError(f.queue.Update(obj)) }

// Delete queues an object as Deleted, unless it is neither queued nor known.
func (f *DeltaFIFO) Delete(obj any) error { return clientGoError(f.queue.Delete(obj)) }

// AddIfNotPresent queues Deltas again, after their processing failed, unless newer
// ones are queued for their key.
func (f *DeltaFIFO) AddIfNotPresent(obj any) error {
	deltas, ok := obj.(Deltas)
	if !ok {
		return fmt.Errorf("queueing a %T again: a DeltaFIFO accepts only the Deltas that Pop returned", obj)
	}
	key, err := f.KeyOf(deltas)
	if err != nil {
		return KeyError{Obj: obj, Err: err}
	}
	return clientGoError(f.queue.AddIfNotPresent(key, toEngine(deltas)))
}

// Replace queues the objects of list, and deletions of the known objects that are missing from it.
func (f *DeltaFIFO) Replace(list []any, resourceVersion string) error {
	return clientGoError(f.queue.Replace(list, resourceVersion))
}

// Resync queues every known object for which nothing is queued.
func (f *DeltaFIFO) Resync() error { return clientGoError(f.queue.Resync()) }

// Get returns the queued Deltas of an object's key.
func (f *DeltaFIFO) Get(obj any) (item any, exists bool, err error) {
	key, err := f.KeyOf(obj)
	if err != nil {
		return nil, false, KeyError{Obj: obj, Err: err}
	}
	return f.GetByKey(key)
}

// GetByKey returns the queued Deltas of a key.
func (f *DeltaFIFO) GetByKey(key string) (item any, exists bool, err error) {
	d, exists, err := f.queue.GetByKey(key)
	if err != nil || !exists {
		return nil, false, clientGoError(err)
	}
	return toDeltas(d), true, nil
}

// List returns the newest object of each queued key.
func (f *DeltaFIFO) List() []any { return f.queue.List() }

// ListKeys returns the queued keys in the order in which they will be popped.
func (f *DeltaFIFO) ListKeys() []string { return f.queue.ListKeys() }

// Pop waits until a key is queued and processes its Deltas under the queue's lock.
func (f *DeltaFIFO) Pop(process PopProcessFunc) (any, error) {
	var item Deltas
	_, err := f.queue.Pop(func(_ string, d queue.Deltas[any], isInInitialList bool) error {
		item = toDeltas(d)
		return process(item, isInInitialList)
	})
	if item == nil {
		return nil, clientGoError(err)
	}
	return item, err
}

// Close makes Pop fail once the queue is empty.
func (f *DeltaFIFO) Close() { f.queue.Close() }

// IsClosed reports whether Close was called.
func (f *DeltaFIFO) IsClosed() bool { return f.queue.IsClosed() }

// HasSynced reports whether the objects of the first Replace were popped, or
// something else was queued before any Replace.
func (f *DeltaFIFO) HasSynced() bool { return f.queue.HasSynced() }

// HasSyncedChecker returns a checker that is done when HasSynced is true.
func (f *DeltaFIFO) HasSyncedChecker() DoneChecker { return f }

// Name returns the name of the queue.
func (f *DeltaFIFO) Name() string { return f.name }

// Done returns a channel that is closed when HasSynced becomes true.
func (f *DeltaFIFO) Done() <-chan struct{} { return f.queue.Synced() }

// Transformer returns the transform that is applied to each object.
func (f *DeltaFIFO) Transformer() TransformFunc { return f.transform }

var typesOut = [...]DeltaType{
	object.Added: Added, object.Updated: Updated, object.Deleted: Deleted, object.Replaced: Replaced,
	object.Resynced: Sync,
}

var typesIn = map[DeltaType]object.ChangeType{
	Added: object.Added, Updated: object.Updated, Deleted: object.Deleted, Replaced: object.Replaced,
	Sync: object.Resynced,
}

func toDeltas(in queue.Deltas[any]) Deltas {
	out := make(Deltas, len(in))
	for i, d := range in {
		out[i] = Delta{Type: typesOut[d.Type], Object: d.Object}
	}
	return out
}

// toEngine is the inverse of toDeltas. A type that a DeltaFIFO does not have becomes
// the zero type, which the engine refuses with an error.
func toEngine(in Deltas) queue.Deltas[any] {
	out := make(queue.Deltas[any], len(in))
	for i, d := range in {
		out[i] = queue.Delta[any]{Type: typesIn[d.Type], Object: d.Object}
	}
	return out
}
