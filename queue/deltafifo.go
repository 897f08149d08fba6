package queue

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/mirador-k8s/mirador/object"
)

// KnownObjects are the objects that the consumer of a DeltaFIFO has already processed,
// usually its store.
type KnownObjects[T any] interface {
	// ListKeys returns the keys of all known objects.
	ListKeys() []string
	// GetByKey returns a known object.
	GetByKey(key string) (obj T, exists bool, err error)
}

// Options configure a DeltaFIFO. All functions are called while the queue is
// locked, except Key, and must not call it.
type Options[T any] struct {
	// Key returns the key of an object. It is required.
	Key func(obj T) (string, error)
	// Known is used by Replace to find deleted objects, by Delete to ignore unknown
	// objects, and by Resync to list all objects. If it is nil, only queued objects count
	// as known.
	Known KnownObjects[T]
	// EmitReplaced makes Replace queue deltas of type Replaced instead of Resynced.
	EmitReplaced bool
	// Tombstone returns the object of a Deleted delta that Replace inferred. last is the
	// last known state: the zero T if Known could not return it, or a tombstone if the
	// newest queued delta has one. The default returns last.
	Tombstone func(key string, last T) T
	// Inferred reports whether an object is a tombstone. It is called to choose between
	// two consecutive Deleted deltas, and before Transform.
	Inferred func(obj T) bool
	// Transform is applied once to each object that is queued. It is not applied to
	// tombstones and to objects queued by Resync, which were transformed before.
	Transform func(obj T) (T, error)
	// OnError is called if Known listed a key but did not return its object. Replace
	// deletes such a key, and Resync skips it.
	OnError func(err error)
}

// DeltaFIFO is a queue of keys, each with its deltas.
type DeltaFIFO[T any] struct {
	opts Options[T]

	mu      sync.Mutex
	arrived sync.Cond
	waiting map[string]entry[T]
	order   keyOrder
	deltas  int
	closed  bool

	// populated is true once something was queued. It fixes the value of initial.
	populated bool
	// initial is the number of keys of the first list that were not popped yet.
	initial  int
	isSynced bool
	synced   chan struct{}
}

// entry holds the queued deltas of one key.
type entry[T any] struct {
	deltas Deltas[T]
	// inferred is true if the newest delta is a Deleted that Replace inferred. It works
	// without an Inferred function too.
	inferred bool
}

// NewDeltaFIFO returns an empty queue.
func NewDeltaFIFO[T any](opts Options[T]) (*DeltaFIFO[T], error) {
	if opts.Key == nil {
		return nil, errors.New("make a DeltaFIFO: Options.Key is nil; set it to a function that returns the key of an object")
	}
	f := &DeltaFIFO[T]{
		opts:    opts,
		waiting: make(map[string]entry[T]),
		synced:  make(chan struct{}),
	}
	f.arrived.L = &f.mu
	return f, nil
}

// KeyOf returns the key of an object. Its error is a KeyError.
func (f *DeltaFIFO[T]) KeyOf(obj T) (string, error) {
	key, err := f.opts.Key(obj)
	if err != nil {
		return "", KeyError{Obj: obj, Err: err}
	}
	return key, nil
}

// Add queues an object as Added.
func (f *DeltaFIFO[T]) Add(obj T) error { return f.put(object.Added, obj) }

// Update queues an object as Updated.
func (f *DeltaFIFO[T]) Update(obj T) error { return f.put(object.Updated, obj) }

// Delete queues an object as Deleted. It ignores an object that is neither queued nor
// known, because an earlier Replace without the object has already announced its delete.
func (f *DeltaFIFO[T]) Delete(obj T) error { return f.put(object.Deleted, obj) }

func (f *DeltaFIFO[T]) put(kind object.ChangeType, obj T) error {
	key, err := f.KeyOf(obj)
	if err != nil {
		return fmt.Errorf("queue as %s: %w", kind, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if kind == object.Deleted && !f.knows(key) {
		f.populate(0)
		return nil
	}
	if obj, err = f.transform(key, obj); err != nil {
		return err
	}
	f.populate(0)
	f.enqueue(key, Delta[T]{kind, obj}, false)
	return nil
}

// knows reports whether an object is queued or known. It returns true if Known fails.
func (f *DeltaFIFO[T]) knows(key string) bool {
	if _, queued := f.waiting[key]; queued {
		return true
	}
	if f.opts.Known == nil {
		return false
	}
	_, exists, err := f.opts.Known.GetByKey(key)
	return exists || err != nil
}

func (f *DeltaFIFO[T]) transform(key string, obj T) (T, error) {
	if f.opts.Transform == nil || f.isTombstone(obj) {
		return obj, nil
	}
	out, err := f.opts.Transform(obj)
	if err != nil {
		return out, fmt.Errorf("transform %q before queueing it: %w", key, err)
	}
	return out, nil
}

func (f *DeltaFIFO[T]) isTombstone(obj T) bool {
	return f.opts.Inferred != nil && f.opts.Inferred(obj)
}

// enqueue appends a delta to its key, and the key to the queue if it is not queued.
func (f *DeltaFIFO[T]) enqueue(key string, d Delta[T], inferred bool) {
	e, queued := f.waiting[key]
	if !queued {
		f.order.push(key)
	}
	if n := len(e.deltas); n > 0 && d.Type == object.Deleted && e.deltas[n-1].Type == object.Deleted {
		if !e.inferred && !f.isTombstone(e.deltas[n-1].Object) {
			return // the queued delete was observed and takes precedence
		}
		e.deltas[n-1] = d
	} else {
		e.deltas = append(e.deltas, d)
		f.deltas++
	}
	e.inferred = inferred
	f.waiting[key] = e
	f.arrived.Broadcast()
}

// populate sets, on its first call, the number of keys that must be popped before the
// queue counts as synced.
func (f *DeltaFIFO[T]) populate(initial int) {
	if f.populated {
		return
	}
	f.populated = true
	f.initial = initial
	f.checkSynced()
}

func (f *DeltaFIFO[T]) checkSynced() {
	if f.populated && f.initial == 0 && !f.isSynced {
		f.isSynced = true
		close(f.synced)
	}
}

// AddIfNotPresent queues deltas again whose processing failed, at the end of the queue. If
// the key was queued again in the meantime, they are dropped, because the queued ones are
// newer.
func (f *DeltaFIFO[T]) AddIfNotPresent(key string, d Deltas[T]) error {
	if len(d) == 0 {
		return fmt.Errorf("queue %q again: there are no deltas", key)
	}
	for _, one := range d {
		if one.Type < object.Added || one.Type > object.Resynced {
			return fmt.Errorf("queue %q again: a DeltaFIFO has no deltas of type %s", key, one.Type)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.populate(0)
	if _, queued := f.waiting[key]; queued {
		return nil
	}
	f.order.push(key)
	f.waiting[key] = entry[T]{deltas: slices.Clone(d)}
	f.deltas += len(d)
	f.arrived.Broadcast()
	return nil
}
