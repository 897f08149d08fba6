package pack

import (
	"sync/atomic"
)

// maxDepth is the largest number of bases that a base builds on: reading an object reads at most maxDepth + 1 bases.
const maxDepth = 1

// A base is an object as it was when its siblings were packed. It never changes: what was packed against it can be
// read as long as there is a reference to the base. It is packed itself, against its parent if it has one.
type base struct {
	id     uint64
	parent *base
	data   string // without context, which belongs to one object
	cache  *cache
	raw    atomic.Pointer[[]byte] // the object itself, while the cache holds it
	shape  atomic.Pointer[string] // ops of the first good sibling; never changes once it is set
	length uint32
	depth  uint8
	gone   bool        // no stored object uses it; guarded by cache.mu
	recent atomic.Bool // read since the cache last considered its eviction

	// Used by the Packer, guarded by its lock.
	indexed uint64 // features under which the index has it
	users   int32  // stored objects and bases that build on this one
	seen    uint32 // siblings packed so far
	usual   uint32 // moving average of the size of siblings
	best    uint32 // the minimum of usual
	worth   uint32 // size of this object against its parent
	proven  bool   // a sibling was smaller with this base than without
}

// baseCost is the memory of a base besides its data and shape: the struct and the header of the shape.
const baseCost = 136 + 16

func (b *base) cost() int {
	n := baseCost + len(b.data)
	if s := b.shape.Load(); s != nil {
		n += len(*s)
	}
	return n
}

// bytes returns the object itself, from the cache or in a buffer of r.
func (b *base) bytes(r *reading) ([]byte, error) {
	if raw := b.raw.Load(); raw != nil {
		if !b.recent.Load() { // avoid a store, which takes the cache line from other readers
			b.recent.Store(true)
		}
		return *raw, nil
	}
	buf, of := &r.bases[b.depth], &r.of[b.depth]
	if *of == b.id {
		return *buf, nil
	}
	var parent []byte
	var err error
	if b.parent != nil {
		if parent, err = b.parent.bytes(r); err != nil {
			return nil, err
		}
	}
	*of = 0
	// Unchecked, because the check of the object that is read covers what it copies from here.
	if *buf, err = r.append((*buf)[:0], b.data, parent, nil, "", true); err != nil {
		return nil, err
	}
	*of = b.id
	b.cache.maybeAdd(b, *buf)
	return *buf, nil
}

// poorSize returns the packed size above which a sibling of n bytes should become a base itself: more than siblings of
// Kubernetes objects usually take, or than the siblings of this base took. If new bases do not help, the credit runs
// out.
func (b *base) poorSize(n int) int {
	usual := n/32 + 64
	if b.seen >= trusted {
		usual = min(usual, int(b.best)*3/2+48)
	}
	return usual
}

// trusted is the number of siblings after which best is meaningful.
const trusted = 8

// record records the size of a sibling.
func (b *base) record(size int) {
	b.usual = uint32((7*int(b.usual) + size) / 8)
	if b.seen == 0 {
		b.usual = uint32(size)
	}
	b.seen++
	if b.seen <= trusted || b.usual < b.best {
		b.best = b.usual
	}
}
