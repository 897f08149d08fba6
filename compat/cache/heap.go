package cache

import (
	"container/heap"
	"errors"
	"sync"
)

var errHeapClosed = errors.New("heap is closed")

// Heap is a priority queue: Pop returns the least object.
type Heap struct {
	key KeyFunc

	mu      sync.Mutex
	arrived sync.Cond
	items   map[string]*heapEntry
	order   heapOrder
	closed  bool
}

type heapEntry struct {
	key string
	obj any
	at  int // index in heapOrder.entries
}

// heapOrder implements heap.Interface.
type heapOrder struct {
	entries []*heapEntry
	less    LessFunc
}

func (o *heapOrder) Len() int           { return len(o.entries) }
func (o *heapOrder) Less(i, j int) bool { return o.less(o.entries[i].obj, o.entries[j].obj) }

func (o *heapOrder) Swap(i, j int) {
	o.entries[i], o.entries[j] = o.entries[j], o.entries[i]
	o.entries[i].at, o.entries[j].at = i, j
}

func (o *heapOrder) Push(x any) {
	e := x.(*heapEntry)
	e.at = len(o.entries)
	o.entries = append(o.entries, e)
}

func (o *heapOrder) Pop() any {
	last := len(o.entries) - 1
	e := o.entries[last]
	o.entries[last] = nil
	o.entries = o.entries[:last]
	return e
}

// NewHeap returns an empty heap.
func NewHeap(keyFn KeyFunc, lessFn LessFunc) *Heap {
	h := &Heap{key: keyFn, items: map[string]*heapEntry{}, order: heapOrder{less: lessFn}}
	h.arrived.L = &h.mu
	return h
}

// put stores an object. If replace is false, an existing object of the same key stays.
func (h *Heap) put(obj any, replace bool) error {
	key, err := h.key(obj)
	if err != nil {
		return KeyError{Obj: obj, Err: err}
	}
	if h.closed {
		return errHeapClosed
	}
	switch e, exists := h.items[key]; {
	case !exists:
		e = &heapEntry{key: key, obj: obj}
		h.items[key] = e
		heap.Push(&h.order, e)
	case replace:
		e.obj = obj
		heap.Fix(&h.order, e.at)
	}
	h.arrived.Broadcast()
	return nil
}

// Add adds an object, or replaces the one with its key.
func (h *Heap) Add(obj any) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.put(obj, true)
}

// BulkAdd adds several objects atomically.
func (h *Heap) BulkAdd(list []any) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return errHeapClosed
	}
	for _, obj := range list {
		if err := h.put(obj, true); err != nil {
			return err
		}
	}
	return nil
}

// AddIfNotPresent adds an object unless there is one with its key.
func (h *Heap) AddIfNotPresent(obj any) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.put(obj, false)
}

// Update is the same as Add.
func (h *Heap) Update(obj any) error { return h.Add(obj) }

// Delete removes an object. It is an error if there is none with its key.
func (h *Heap) Delete(obj any) error {
	key, err := h.key(obj)
	if err != nil {
		return KeyError{Obj: obj, Err: err}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	e, exists := h.items[key]
	if !exists {
		return errors.New("object not found")
	}
	heap.Remove(&h.order, e.at)
	delete(h.items, key)
	return nil
}

// Pop waits for an object, then removes and returns the least.
func (h *Heap) Pop() (any, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.items) == 0 {
		if h.closed {
			return nil, errHeapClosed
		}
		h.arrived.Wait()
	}
	e := heap.Pop(&h.order).(*heapEntry)
	delete(h.items, e.key)
	return e.obj, nil
}

// List returns all objects, in no particular order.
func (h *Heap) List() []any {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]any, 0, len(h.items))
	for _, e := range h.items {
		list = append(list, e.obj)
	}
	return list
}

// ListKeys returns all keys, in no particular order.
func (h *Heap) ListKeys() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	keys := make([]string, 0, len(h.items))
	for key := range h.items {
		keys = append(keys, key)
	}
	return keys
}

// Get finds the object with the key of obj.
func (h *Heap) Get(obj any) (any, bool, error) {
	key, err := h.key(obj)
	if err != nil {
		return nil, false, KeyError{Obj: obj, Err: err}
	}
	return h.GetByKey(key)
}

// GetByKey finds an object.
func (h *Heap) GetByKey(key string) (any, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e, exists := h.items[key]; exists {
		return e.obj, true, nil
	}
	return nil, false, nil
}

// Close makes Pop fail once the heap is empty. Nothing can be added afterwards.
func (h *Heap) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.arrived.Broadcast()
}

// IsClosed reports whether Close was called.
func (h *Heap) IsClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}
