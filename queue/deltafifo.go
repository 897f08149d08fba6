package queue

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/mirador-k8s/mirador/object"
)

// KnownObjects is what the consumer of a DeltaFIFO has already taken over:
// usually its store.
type KnownObjects[T any] interface {
	// ListKeys gives the keys of all known objects.
	ListKeys() []string
	// GetByKey looks one of them up.
	GetByKey(key string) (obj T, exists bool, err error)
}

// Options configure a DeltaFIFO. All functions are called while the queue is
// locked, except Key, and must not call it.
type Options[T any] struct {
	// Key names an object. It is required.
	Key func(obj T) (string, error)
	// Known lets Replace find the objects that are gone, Delete recognise what it
	// may ignore, and Resync give everything again. Without it only what is
	// queued counts as known.
	Known KnownObjects[T]
	// EmitReplaced makes Replace queue deltas of type Replaced; otherwise they
	// are Resynced, as they were before Replaced existed.
	EmitReplaced bool
	// Tombstone makes what a Deleted carries that was not seen but inferred by
	// Replace. Last is the last state known: the zero T where Known could not
	// give it, a tombstone where the newest queued delta holds one. By default
	// it is last itself.
	Tombstone func(key string, last T) T
	// Inferred says whether an object is a tombstone. It is asked when of two
	// Deleted in a row one has to go, and before Transform.
	Inferred func(obj T) bool
	// Transform is applied once to each object that enters the queue. Tombstones
	// and objects given again by Resync went through it before.
	Transform func(obj T) (T, error)
	// OnError is told what was worked around: Known listed a key that it could
	// then not give. Such a key is deleted by Replace and skipped by Resync.
	OnError func(err error)
}

// DeltaFIFO is a queue of keys, each with the deltas that wait for it.
type DeltaFIFO[T any] struct {
	opts Options[T]

	mu      sync.Mutex
	arrived sync.Cond
	waiting map[string]entry[T]
	order   keyOrder
	deltas  int
	closed  bool

	// populated: something was queued, so what the first list is has been decided.
	populated bool
	// initial counts the keys of the first list that were not popped yet.
	initial  int
	isSynced bool
	synced   chan struct{}
}

// entry is what waits for one key.
type entry[T any] struct {
	deltas Deltas[T]
	// inferred says that the newest delta is a Deleted that Replace made up. It
	// covers objects for which there is no Inferred function.
	inferred bool
}

// NewDeltaFIFO makes an empty queue.
func NewDeltaFIFO[T any](opts Options[T]) (*DeltaFIFO[T], error) {
	if opts.Key == nil {
		return nil, errors.New("make a DeltaFIFO: Options.Key is nil; set it to a function that names an object")
	}
	f := &DeltaFIFO[T]{
		opts:    opts,
		waiting: make(map[string]entry[T]),
		synced:  make(chan struct{}),
	}
	f.arrived.L = &f.mu
	return f, nil
}

// KeyOf gives the key of an object. Its error is a KeyError.
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

// Delete queues an object as Deleted, unless it is neither queued nor known:
// then its delete was announced before, by a Replace that no longer had it.
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

// knows reports whether a delete of key is news. Where Known cannot tell, it is.
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

// enqueue appends a delta to its key, and the key to the order if it is new.
func (f *DeltaFIFO[T]) enqueue(key string, d Delta[T], inferred bool) {
	e, queued := f.waiting[key]
	if !queued {
		f.order.push(key)
	}
	if n := len(e.deltas); n > 0 && d.Type == object.Deleted && e.deltas[n-1].Type == object.Deleted {
		if !e.inferred && !f.isTombstone(e.deltas[n-1].Object) {
			return // what waits was seen: the new one cannot say more
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

// populate decides, the first time it is called, how much has to be popped
// before the queue counts as synced.
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

// AddIfNotPresent puts deltas back whose processing failed, at the end of the
// queue. If the key was queued again in the meantime they are dropped: what
// waits is newer.
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
