package cache

import (
	"errors"
	"fmt"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/queue"
)

// DeltaFIFO is the engine's DeltaFIFO under client-go's names, with the methods
// that client-go dropped in 0.33: Get, GetByKey, List, ListKeys, AddIfNotPresent.
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

// NewDeltaFIFO makes an empty queue that says Sync for what Replace brings.
func NewDeltaFIFO(keyFunc KeyFunc, knownObjects KeyListerGetter) *DeltaFIFO {
	return NewDeltaFIFOWithOptions(DeltaFIFOOptions{KeyFunction: keyFunc, KnownObjects: knownObjects})
}

// NewDeltaFIFOWithOptions makes an empty queue.
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
			utilruntime.HandleErrorWithLogger(logger, err, "Known objects do not hold what they list")
		},
	}
	if opts.KnownObjects != nil { // a nil interface in a non-nil one would be asked
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

// tombstone stands for an object whose deletion was not seen. What stands for one
// already says all there is to say.
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

// KeyOf gives the key of an object, of Deltas or of a DeletedFinalStateUnknown.
func (f *DeltaFIFO) KeyOf(obj any) (string, error) { return keyOfQueued(f.keyFunc, obj) }

// keyOfQueued is a KeyFunc for whatever can be met in a queue of deltas.
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

// named gives client-go's form of the engine's errors.
func named(err error) error {
	if errors.Is(err, queue.ErrClosed) {
		return ErrFIFOClosed
	}
	if k, ok := errors.AsType[queue.KeyError](err); ok {
		return KeyError{Obj: k.Obj, Err: k.Err}
	}
	return err
}

// Add queues an object as Added.
func (f *DeltaFIFO) Add(obj any) error { return named(f.queue.Add(obj)) }

// Update queues an object as Updated.
func (f *DeltaFIFO) Update(obj any) error { return named(f.queue.Update(obj)) }

// Delete queues an object as Deleted, unless nothing is known of it.
func (f *DeltaFIFO) Delete(obj any) error { return named(f.queue.Delete(obj)) }

// AddIfNotPresent queues Deltas again whose processing failed, unless something
// newer waits for their key.
func (f *DeltaFIFO) AddIfNotPresent(obj any) error {
	deltas, ok := obj.(Deltas)
	if !ok {
		return fmt.Errorf("queueing a %T again: a DeltaFIFO takes back the Deltas that Pop gave", obj)
	}
	key, err := f.KeyOf(deltas)
	if err != nil {
		return KeyError{Obj: obj, Err: err}
	}
	return named(f.queue.AddIfNotPresent(key, toEngine(deltas)))
}

// Replace queues list as all there is, and a deletion for what is missing in it.
func (f *DeltaFIFO) Replace(list []any, resourceVersion string) error {
	return named(f.queue.Replace(list, resourceVersion))
}

// Resync queues every known object for which nothing waits.
func (f *DeltaFIFO) Resync() error { return named(f.queue.Resync()) }

// Get gives the Deltas that wait for an object's key.
func (f *DeltaFIFO) Get(obj any) (item any, exists bool, err error) {
	key, err := f.KeyOf(obj)
	if err != nil {
		return nil, false, KeyError{Obj: obj, Err: err}
	}
	return f.GetByKey(key)
}

// GetByKey gives the Deltas that wait for a key.
func (f *DeltaFIFO) GetByKey(key string) (item any, exists bool, err error) {
	d, exists, err := f.queue.GetByKey(key)
	if err != nil || !exists {
		return nil, false, named(err)
	}
	return toDeltas(d), true, nil
}

// List gives the newest object of each key that waits.
func (f *DeltaFIFO) List() []any { return f.queue.List() }

// ListKeys gives the keys that wait, the next to be popped first.
func (f *DeltaFIFO) ListKeys() []string { return f.queue.ListKeys() }

// Pop waits for a key and processes its Deltas under the queue's lock.
func (f *DeltaFIFO) Pop(process PopProcessFunc) (any, error) {
	var item Deltas
	_, err := f.queue.Pop(func(_ string, d queue.Deltas[any], isInInitialList bool) error {
		item = toDeltas(d)
		return process(item, isInInitialList)
	})
	if item == nil {
		return nil, named(err)
	}
	return item, err
}

// Close lets Pop fail once the queue is empty.
func (f *DeltaFIFO) Close() { f.queue.Close() }

// IsClosed reports whether Close was called.
func (f *DeltaFIFO) IsClosed() bool { return f.queue.IsClosed() }

// HasSynced reports whether the first Replace was popped, or something else was
// queued first.
func (f *DeltaFIFO) HasSynced() bool { return f.queue.HasSynced() }

// HasSyncedChecker is done when HasSynced is.
func (f *DeltaFIFO) HasSyncedChecker() DoneChecker { return f }

// Name names the queue.
func (f *DeltaFIFO) Name() string { return f.name }

// Done is closed when HasSynced turns true.
func (f *DeltaFIFO) Done() <-chan struct{} { return f.queue.Synced() }

// Transformer is what is applied to each object.
func (f *DeltaFIFO) Transformer() TransformFunc { return f.transform }

var typesOut = [...]DeltaType{
	object.Added: Added, object.Updated: Updated, object.Deleted: Deleted, object.Replaced: Replaced, object.Resynced: Sync,
}

var typesIn = map[DeltaType]object.ChangeType{
	Added: object.Added, Updated: object.Updated, Deleted: object.Deleted, Replaced: object.Replaced, Sync: object.Resynced,
}

func toDeltas(in queue.Deltas[any]) Deltas {
	out := make(Deltas, len(in))
	for i, d := range in {
		out[i] = Delta{Type: typesOut[d.Type], Object: d.Object}
	}
	return out
}

// toEngine is the way back. A type that a DeltaFIFO has not becomes the zero one,
// which the engine refuses with a text that says so.
func toEngine(in Deltas) queue.Deltas[any] {
	out := make(queue.Deltas[any], len(in))
	for i, d := range in {
		out[i] = queue.Delta[any]{Type: typesIn[d.Type], Object: d.Object}
	}
	return out
}
