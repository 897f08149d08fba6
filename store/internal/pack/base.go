package pack

import (
	"sync/atomic"
)

// maxDepth bounds how many bases a base builds on: an object is read through at most maxDepth + 1.
const maxDepth = 1

// A base is an object as it was when its siblings were packed. It never changes: what was packed against it can be
// read as long as somebody holds the pointer. It is packed itself, against its parent if it has one.
type base struct {
	parent *base
	data   string // without context, which belongs to one object
	home   *cache
	raw    atomic.Pointer[[]byte] // set while the cache holds it
	shape  atomic.Pointer[string] // ops of the first good sibling; once set, the same for ever
	length uint32
	depth  uint8
	gone   bool        // no stored object uses it; under the lock of home
	recent atomic.Bool // read since the cache looked last

	// For the Packer, under its lock.
	indexed uint64 // features under which it is found
	users   int32  // stored objects and bases that build on this one
	seen    uint32 // siblings packed so far
	usual   uint32 // bytes of a sibling, lately
	best    uint32 // the least that usual ever was
	worth   uint32 // bytes of this object against its parent
	proven  bool   // a sibling became smaller with this base than without
}

// baseCost is what a base takes besides its data and shape: the struct and the header of the shape.
const baseCost = 128 + 16

func (b *base) cost() int {
	n := baseCost + len(b.data)
	if s := b.shape.Load(); s != nil {
		n += len(*s)
	}
	return n
}

// bytes gives the object itself: from the cache, or in a buffer of r.
func (b *base) bytes(r *reading) ([]byte, error) {
	if raw := b.raw.Load(); raw != nil {
		if !b.recent.Load() { // a store would take the cache line from other readers each time
			b.recent.Store(true)
		}
		return *raw, nil
	}
	var parent []byte
	var err error
	if b.parent != nil {
		if parent, err = b.parent.bytes(r); err != nil {
			return nil, err
		}
	}
	// Unchecked: the check of the object that is read covers what it takes from here.
	buf := &r.bases[b.depth]
	if *buf, err = r.append((*buf)[:0], b.data, parent, nil, "", true); err != nil {
		return nil, err
	}
	b.home.offer(b, *buf)
	return *buf, nil
}

// poor is the size from which on a sibling of n bytes should rather become a base: more than siblings of Kubernetes
// objects usually take, or than the siblings of this base once took. Where that is in vain, credit ends it.
func (b *base) poor(n int) int {
	usual := n/32 + 64
	if b.seen >= trusted {
		usual = min(usual, int(b.best)*3/2+48)
	}
	return usual
}

// trusted is how many siblings tell what is usual with a base.
const trusted = 8

// record notes the size of a sibling.
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
