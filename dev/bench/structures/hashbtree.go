package structures

import (
	"hash/maphash"
	"runtime"
	"sync/atomic"
)

// hashBTree answers Get from a hash and the rest from ordered trees, which it copies only
// if a reader has taken them since the last batch.
type hashBTree struct {
	hash  hash
	offer atomic.Pointer[offer]
}

// offer is the trees after a batch. Once a reader took them, nobody edits them.
type offer struct {
	state atomic.Uint32
	trees
}

const (
	withdrawn uint32 = iota // the writer edits them
	offered
	taken
)

func newHashBTree() Candidate {
	h := &hashBTree{}
	h.hash.cells.Store(new(make([]atomic.Pointer[Object], 8)))
	empty := &offer{trees: newTrees()}
	empty.state.Store(offered)
	h.offer.Store(empty)
	return h
}

func (h *hashBTree) Update(batch []*Object) {
	now := h.offer.Load()
	if !now.state.CompareAndSwap(offered, withdrawn) { // a reader has it
		now = &offer{trees: now.copy()}
	}
	for _, o := range batch {
		now.set(o)
		h.hash.set(o)
	}
	now.state.Store(offered)
	h.offer.Store(now)
}

// take waits for the end of a batch if nobody took the state before it.
func (h *hashBTree) take() *trees {
	for {
		now := h.offer.Load()
		if now.state.Load() == taken || now.state.CompareAndSwap(offered, taken) {
			return &now.trees
		}
		runtime.Gosched()
	}
}

func (h *hashBTree) Get(key string) *Object { return find(*h.hash.cells.Load(), key).Load() }

func (h *hashBTree) By(index, value string, yield func(*Object)) { h.take().by(index, value, yield) }

func (h *hashBTree) All(yield func(*Object)) { h.take().all(yield) }

// hash is read without a lock while one goroutine writes: open addressing, at most half
// full. It cannot delete, which the work does not ask for.
type hash struct {
	cells atomic.Pointer[[]atomic.Pointer[Object]]
	used  int
}

// find gives the cell of a key or, where there is none, the empty one for it.
func find(cells []atomic.Pointer[Object], key string) *atomic.Pointer[Object] {
	for i := maphash.String(seed, key); ; i++ {
		c := &cells[i&uint64(len(cells)-1)]
		if o := c.Load(); o == nil || o.Key == key {
			return c
		}
	}
}

func (h *hash) set(o *Object) {
	cells := *h.cells.Load()
	c := find(cells, o.Key)
	if c.Load() == nil {
		h.used++
	}
	c.Store(o)
	if h.used <= len(cells)/2 {
		return
	}
	larger := make([]atomic.Pointer[Object], 2*len(cells))
	for i := range cells {
		if o := cells[i].Load(); o != nil {
			find(larger, o.Key).Store(o)
		}
	}
	h.cells.Store(&larger)
}
