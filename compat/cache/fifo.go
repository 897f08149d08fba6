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
	order   []string // may name keys that were deleted since, and then twice
	closed  bool
	initial initialSync
}

var (
	_ Queue       = &FIFO{}
	_ Store       = &FIFO{}
	_ DoneChecker = &FIFO{}
)

// NewFIFO makes an empty queue.
func NewFIFO(keyFunc KeyFunc) *FIFO {
	f := &FIFO{key: keyFunc, items: map[string]any{}, initial: newInitialSync()}
	f.arrived.L = &f.mu
	return f
}

// Add queues an object, or replaces the one of its key that waits.
func (f *FIFO) Add(obj any) error {
	key, err := f.key(obj)
	if err != nil {
		return KeyError{Obj: obj, Err: err}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.initial.begin(0)
	if _, waits := f.items[key]; !waits {
		f.order = append(f.order, key)
	}
	f.items[key] = obj
	f.arrived.Broadcast()
	return nil
}

// Update is Add.
func (f *FIFO) Update(obj any) error { return f.Add(obj) }

// Delete takes an object out of the queue.
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

// Replace makes list all that waits, in its order.
func (f *FIFO) Replace(list []any, _ string) error {
	items := make(map[string]any, len(list))
	order := make([]string, 0, len(list))
	for _, obj := range list {
		key, err := f.key(obj)
		if err != nil {
			return KeyError{Obj: obj, Err: err}
		}
		if _, twice := items[key]; !twice {
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

// Resync does nothing: whatever is here waits.
func (f *FIFO) Resync() error { return nil }

// Pop waits for an object, takes it out and processes it under the queue's lock.
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
		obj, waits := f.items[key]
		if !waits { // deleted
			f.initial.processed(1)
			continue
		}
		delete(f.items, key)
		defer f.initial.processed(1) // only then has it been processed
		return obj, process(obj, wasInitial)
	}
}

// Get gives the object that waits under the key of obj.
func (f *FIFO) Get(obj any) (item any, exists bool, err error) {
	key, err := f.key(obj)
	if err != nil {
		return nil, false, KeyError{Obj: obj, Err: err}
	}
	return f.GetByKey(key)
}

// GetByKey gives the object that waits under a key.
func (f *FIFO) GetByKey(key string) (item any, exists bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	item, exists = f.items[key]
	return item, exists, nil
}

// List gives the objects that wait, in no particular order.
func (f *FIFO) List() []any {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.AppendSeq(make([]any, 0, len(f.items)), maps.Values(f.items))
}

// ListKeys gives the keys that wait, in no particular order.
func (f *FIFO) ListKeys() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.AppendSeq(make([]string, 0, len(f.items)), maps.Keys(f.items))
}

// Bookmark does nothing: what waits has no version.
func (f *FIFO) Bookmark(string) {}

// LastStoreSyncResourceVersion is unknown.
func (f *FIFO) LastStoreSyncResourceVersion() string { return "" }

// Close wakes those who wait in Pop.
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

// HasSynced reports whether the first Replace was processed, or something else was
// queued first.
func (f *FIFO) HasSynced() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.initial.done
}

// HasSyncedChecker is done when HasSynced is.
func (f *FIFO) HasSyncedChecker() DoneChecker { return f }

// Name names the queue.
func (f *FIFO) Name() string { return "FIFO" }

// Done is closed when HasSynced turns true.
func (f *FIFO) Done() <-chan struct{} { return f.initial.synced }
