package cache

import (
	"maps"
	"slices"
	"sync"
)

// FIFO is a queue of objects that holds the latest state of each key once.
type FIFO struct {
	key KeyFunc

	mu      sync.Mutex
	arrived sync.Cond
	items   map[string]any
	order   []string // may contain deleted keys, and a key twice that was deleted and added again
	closed  bool
	initial initialSync
}

var (
	_ Queue       = &FIFO{}
	_ Store       = &FIFO{}
	_ DoneChecker = &FIFO{}
)

// NewFIFO returns an empty queue.
func NewFIFO(keyFunc KeyFunc) *FIFO {
	f := &FIFO{key: keyFunc, items: map[string]any{}, initial: newInitialSync()}
	f.arrived.L = &f.mu
	return f
}

// Add queues an object, or replaces the queued one of its key.
func (f *FIFO) Add(obj any) error {
	key, err := f.key(obj)
	if err != nil {
		return KeyError{Obj: obj, Err: err}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.initial.begin(0)
	if _, queued := f.items[key]; !queued {
		f.order = append(f.order, key)
	}
	f.items[key] = obj
	f.arrived.Broadcast()
	return nil
}

// Update is the same as Add.
func (f *FIFO) Update(obj any) error { return f.Add(obj) }

// Delete removes an object from the queue.
func (f *FIFO) Delete(obj any) error {
	key, err := f.key(obj)
	if err != nil {
		return KeyError{Obj: obj, Err: err}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.initial.begin(0)
	delete(f.items, key)
	return nil
}

// Replace replaces the contents of the queue by list, in its order.
func (f *FIFO) Replace(list []any, _ string) error {
	items := make(map[string]any, len(list))
	order := make([]string, 0, len(list))
	for _, obj := range list {
		key, err := f.key(obj)
		if err != nil {
			return KeyError{Obj: obj, Err: err}
		}
		if _, duplicate := items[key]; !duplicate {
			order = append(order, key)
		}
		items[key] = obj
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.initial.begin(len(items))
	f.items, f.order = items, order
	f.arrived.Broadcast()
	return nil
}

// Resync does nothing: everything in the queue will be popped anyway.
func (f *FIFO) Resync() error { return nil }

// Pop waits for an object, removes it and processes it under the queue's lock.
func (f *FIFO) Pop(process PopProcessFunc) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		for len(f.order) == 0 {
			if f.closed {
				return nil, ErrFIFOClosed
			}
			f.arrived.Wait()
		}
		wasInitial := !f.initial.done
		key := f.order[0]
		f.order = f.order[1:]
		obj, queued := f.items[key]
		if !queued { // deleted
			f.initial.processed(1)
			continue
		}
		delete(f.items, key)
		defer f.initial.processed(1) // after process, which may take long
		return obj, process(obj, wasInitial)
	}
}

// Get returns the queued object with the key of obj.
func (f *FIFO) Get(obj any) (item any, exists bool, err error) {
	key, err := f.key(obj)
	if err != nil {
		return nil, false, KeyError{Obj: obj, Err: err}
	}
	return f.GetByKey(key)
}

// GetByKey returns the queued object with a key.
func (f *FIFO) GetByKey(key string) (item any, exists bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	item, exists = f.items[key]
	return item, exists, nil
}

// List returns the queued objects, in no particular order.
func (f *FIFO) List() []any {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.AppendSeq(make([]any, 0, len(f.items)), maps.Values(f.items))
}

// ListKeys returns the queued keys, in no particular order.
func (f *FIFO) ListKeys() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.AppendSeq(make([]string, 0, len(f.items)), maps.Keys(f.items))
}

// Bookmark does nothing: the queue has no version.
func (f *FIFO) Bookmark(string) {}

// LastStoreSyncResourceVersion returns the empty version.
func (f *FIFO) LastStoreSyncResourceVersion() string { return "" }

// Close makes Pop fail once the queue is empty.
func (f *FIFO) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.arrived.Broadcast()
}

// IsClosed reports whether Close was called.
func (f *FIFO) IsClosed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// HasSynced reports whether the objects of the first Replace were processed, or
// something else was queued before any Replace.
func (f *FIFO) HasSynced() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.initial.done
}

// HasSyncedChecker returns a checker that is done when HasSynced is true.
func (f *FIFO) HasSyncedChecker() DoneChecker { return f }

// Name returns the name of the queue.
func (f *FIFO) Name() string { return "FIFO" }

// Done returns a channel that is closed when HasSynced becomes true.
func (f *FIFO) Done() <-chan struct{} { return f.initial.synced }
