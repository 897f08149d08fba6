package store

import "slices"

// A vector is a tree of three levels: a slice of pages, each with up to 64 leaves of 32 values. A page carries the
// epoch in which it was made, and a bit for each of its leaves that was made in the same epoch. A node of the current
// epoch is in no snapshot and is edited in place; any other is copied first. So copying the vec value and moving to
// the next epoch makes a snapshot, at a cost that does not depend on the size. The first edit after it copies one
// pointer for each 2048 values, a page and a leaf.
//
// A tree with 32 branches per level would copy less in a large store, but a read would pass one or two more nodes.
const (
	width     = 1 << leafBits
	leafBits  = 5
	low       = width - 1
	pageWidth = 1 << pageBits // leaves of a page
	pageBits  = 6
	pageLow   = pageWidth - 1
	pageShift = leafBits + pageBits
)

// leaf has no field besides its values, so that it fills its size class of the allocator.
type leaf[V any] [width]V

type page[V any] struct {
	owner  uint64
	own    uint64              // a bit for each leaf of the same owner
	leaves [pageWidth]*leaf[V] // nil after the last
}

// vec holds up to 32 values in one slice, because most index buckets are small, and more in a tree. The zero vec is
// empty.
type vec[V any] struct {
	few   []V
	pages []*page[V] // instead of few
	owner uint64     // of few or pages
	n     int
}

func (v *vec[V]) get(i int) V {
	if v.pages == nil {
		return v.few[i]
	}
	return v.pages[i>>pageShift].leaves[i>>leafBits&pageLow][i&low]
}

// at returns a pointer to value i, which is read-only.
func (v *vec[V]) at(i int) *V {
	if v.pages == nil {
		return &v.few[i]
	}
	return &v.pages[i>>pageShift].leaves[i>>leafBits&pageLow][i&low]
}

// chunk returns the values from base, a multiple of 32, to the next multiple.
func (v *vec[V]) chunk(base int) []V {
	if v.pages == nil {
		return v.few
	}
	return v.pages[base>>pageShift].leaves[base>>leafBits&pageLow][:min(width, v.n-base)]
}

func (v *vec[V]) set(owner uint64, i int, val V) { *v.edit(owner, i) = val }

func (v *vec[V]) push(owner uint64, val V) {
	i := v.n
	v.own(owner)
	switch {
	case v.pages == nil && i < width:
		v.few = append(v.few, val)
		v.n++
		return
	case v.pages == nil:
		first := new(leaf[V])
		copy(first[:], v.few)
		v.pages = []*page[V]{{owner: owner, own: 1, leaves: [pageWidth]*leaf[V]{first}}}
		v.few = nil
	}
	if i>>pageShift == len(v.pages) {
		v.pages = append(v.pages, &page[V]{owner: owner})
	}
	if i&low == 0 {
		p, at := v.ownPage(owner, i>>pageShift), i>>leafBits&pageLow
		p.leaves[at] = new(leaf[V])
		p.own |= 1 << at
	}
	v.n++
	*v.edit(owner, i) = val
}

// pop removes the last value, and every node that is empty then.
func (v *vec[V]) pop(owner uint64) {
	v.own(owner)
	v.n--
	i := v.n
	if v.pages == nil {
		clear(v.few[i:])
		v.few = v.few[:i]
		return
	}
	if i <= width/2 {
		v.few = slices.Clone(v.pages[0].leaves[0][:i])
		v.pages = nil
		return
	}
	at, page := i>>leafBits&pageLow, v.ownPage(owner, i>>pageShift)
	if i&low > 0 {
		var zero V
		page.ownLeaf(at)[i&low] = zero
		return
	}
	page.leaves[at] = nil
	page.own &^= 1 << at
	if at == 0 {
		last := len(v.pages) - 1
		v.pages[last] = nil
		v.pages = v.pages[:last]
	}
}

// edit returns a pointer to value i in nodes that no snapshot shares.
func (v *vec[V]) edit(owner uint64, i int) *V {
	v.own(owner)
	if v.pages == nil {
		return &v.few[i]
	}
	return &v.ownPage(owner, i>>pageShift).ownLeaf(i >> leafBits & pageLow)[i&low]
}

// own copies the slice at the top if a snapshot shares it.
func (v *vec[V]) own(owner uint64) {
	if v.owner == owner {
		return
	}
	v.owner = owner
	if v.pages != nil {
		v.pages = slices.Clone(v.pages)
	} else {
		v.few = slices.Clone(v.few)
	}
}

// ownPage returns page i, which it copies if a snapshot shares it.
func (v *vec[V]) ownPage(owner uint64, i int) *page[V] {
	p := v.pages[i]
	if p.owner != owner {
		p = &page[V]{owner: owner, leaves: p.leaves}
		v.pages[i] = p
	}
	return p
}

// ownLeaf returns leaf i of an owned page, which it copies if a snapshot shares it.
func (p *page[V]) ownLeaf(i int) *leaf[V] {
	if p.own>>i&1 == 0 {
		copied := *p.leaves[i]
		p.leaves[i] = &copied
		p.own |= 1 << i
	}
	return p.leaves[i]
}
