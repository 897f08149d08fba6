package queue

import (
	"errors"
	"slices"
)

// Pop waits for a key, removes it from the queue and calls process with its deltas.
// isInInitialList is true if the queue had not synced before. Pop returns the deltas and
// the error of process; to retry the deltas, pass them to AddIfNotPresent. The error is
// ErrClosed if the queue is closed and empty.
//
// The queue is locked while process runs.
func (f *DeltaFIFO[T]) Pop(process func(key string, d Deltas[T], isInInitialList bool) error) (Deltas[T], error) {
	if process == nil {
		return nil, errors.New("pop from a DeltaFIFO: the process function is nil")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.order.len() == 0 {
		if f.closed {
			return nil, ErrClosed
		}
		f.arrived.Wait()
	}
	isInInitialList := !f.isSynced
	key := f.order.pop()
	d := f.waiting[key].deltas
	delete(f.waiting, key)
	f.deltas -= len(d)
	if f.initial > 0 {
		f.initial--
		f.checkSynced()
	}
	return d, process(key, d, isInInitialList)
}

// Get returns a copy of the queued deltas of an object.
func (f *DeltaFIFO[T]) Get(obj T) (Deltas[T], bool, error) {
	key, err := f.KeyOf(obj)
	if err != nil {
		return nil, false, err
	}
	return f.GetByKey(key)
}

// GetByKey returns a copy of the queued deltas of a key. Its error is always nil; the
// signature is that of a store.
func (f *DeltaFIFO[T]) GetByKey(key string) (Deltas[T], bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e, queued := f.waiting[key]
	return slices.Clone(e.deltas), queued, nil
}

// List returns the newest object of each key, in the order of the queue.
func (f *DeltaFIFO[T]) List() []T {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]T, 0, f.order.len())
	for _, key := range f.order.keys() {
		d, _ := f.waiting[key].deltas.Newest()
		list = append(list, d.Object)
	}
	return list
}

// ListKeys returns the keys in the order of the queue.
func (f *DeltaFIFO[T]) ListKeys() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append(make([]string, 0, f.order.len()), f.order.keys()...)
}

// HasSynced reports whether everything of the first Replace has been popped, or
// something else was queued before any Replace.
func (f *DeltaFIFO[T]) HasSynced() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.isSynced
}

// Synced returns a channel that is closed when HasSynced becomes true.
func (f *DeltaFIFO[T]) Synced() <-chan struct{} { return f.synced }

// Close makes Pop return ErrClosed once the queue is empty, also in goroutines that are
// already waiting. Queued keys, even later ones, can still be popped.
func (f *DeltaFIFO[T]) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.arrived.Broadcast()
}

// IsClosed reports whether Close was called.
func (f *DeltaFIFO[T]) IsClosed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// keyOrder is a first-in first-out list of keys that keeps no popped key alive.
type keyOrder struct {
	list []string
	head int
}

func (o *keyOrder) len() int       { return len(o.list) - o.head }
func (o *keyOrder) keys() []string { return o.list[o.head:] }

func (o *keyOrder) push(key string) {
	// Move the keys to the front instead of growing, so that the slice does not grow
	// without bound if the queue is never empty. At least half must be free, so each
	// key is moved once on average.
	if len(o.list) == cap(o.list) && o.head > len(o.list)/2 {
		n := copy(o.list, o.list[o.head:])
		clear(o.list[n:])
		o.list, o.head = o.list[:n], 0
	}
	o.list = append(o.list, key)
}

func (o *keyOrder) pop() string {
	key := o.list[o.head]
	o.list[o.head] = ""
	o.head++
	if o.head == len(o.list) {
		o.list, o.head = o.list[:0], 0
		if cap(o.list) > 4096 {
			o.list = nil // free the memory of a burst
		}
	}
	return key
}
