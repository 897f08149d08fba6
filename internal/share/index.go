package share

import "unsafe"

// An entry is a part that stored objects have in common: a string, a block of n values, or a value.
type entry struct {
	at   unsafe.Pointer // what objects refer to; the table never reads it
	own  unsafe.Pointer // an equal part of the table's own, to compare with; for strings, which cannot change, the same
	plan *plan          // text for strings; nil while the entry is free
	uses Uses           // of the entries below it
	n    uint32         // consecutive values; 0 if at and own are the addresses of an any that holds the value
	hash uint32
	refs uint32 // uses by stored objects and by other entries; while the entry is free, the next free entry
}

// value returns the value that objects refer to.
func (e *entry) value() any { return *(*any)(e.at) }

// index finds entries by their contents. It is a hash table with linear probing. Entries are known by their number,
// from 1, which does not change.
type index struct {
	entries []entry
	free    uint32
	used    int
	byHash  []uint64 // hash and number of an entry
}

const minIndex = 64

func fold(hash uint64) uint32 { return uint32(hash ^ hash>>32) }

// find returns the entry with the contents of a part, or 0.
func (x *index) find(w *walker, hash uint64, of part) uint32 {
	if x.used == 0 {
		return 0
	}
	h, mask := fold(hash), uint32(len(x.byHash)-1)
	for i := h & mask; ; i = (i + 1) & mask {
		cell := x.byHash[i]
		if cell == 0 {
			return 0
		}
		if uint32(cell>>32) != h {
			continue
		}
		e := &x.entries[uint32(cell)]
		if e.plan == of.plan && int(e.n) == of.n && w.equalPart(e.own, of) {
			return uint32(cell)
		}
	}
}

// equalPart reports whether an entry that is compared by own has the contents of a part of the same plan and length.
func (w *walker) equalPart(own unsafe.Pointer, of part) bool {
	switch {
	case of.n > 0:
		return w.equalBlock(of.plan, own, of.at, of.n)
	case of.plan.isMap():
		return w.equalMap(of.plan, *(*any)(own), of.value)
	default:
		return w.equalAny(*(*any)(own), of.value)
	}
}

// add makes an entry with one use.
func (x *index) add(hash uint64, p *plan, at, own unsafe.Pointer, n int, uses Uses) uint32 {
	if (x.used+1)*4 > len(x.byHash)*3 {
		x.rebuild(max(minIndex, len(x.byHash)*2))
	}
	id := x.free
	if id != 0 {
		x.free = x.entries[id].refs
	} else {
		if len(x.entries) == 0 {
			x.entries = make([]entry, 1, minIndex) // number 0 is not used
		}
		id = uint32(len(x.entries))
		x.entries = append(x.entries, entry{})
	}
	x.entries[id] = entry{at: at, own: own, plan: p, uses: uses, n: uint32(n), hash: fold(hash), refs: 1}
	x.used++
	x.link(id)
	return id
}

func (x *index) link(id uint32) {
	e := &x.entries[id]
	mask := uint32(len(x.byHash) - 1)
	i := e.hash & mask
	for x.byHash[i] != 0 {
		i = (i + 1) & mask
	}
	x.byHash[i] = uint64(e.hash)<<32 | uint64(id)
}

// remove removes an entry and moves the cells behind it that it had displaced.
func (x *index) remove(id uint32) {
	e := &x.entries[id]
	mask := uint32(len(x.byHash) - 1)
	i := e.hash & mask
	for uint32(x.byHash[i]) != id {
		i = (i + 1) & mask
	}
	for j := (i + 1) & mask; x.byHash[j] != 0; j = (j + 1) & mask {
		if home := uint32(x.byHash[j]>>32) & mask; (j-home)&mask >= (j-i)&mask {
			x.byHash[i], i = x.byHash[j], j
		}
	}
	x.byHash[i] = 0
	*e = entry{refs: x.free}
	x.free = id
	x.used--
}

// shrink frees memory when few entries are left.
func (x *index) shrink() {
	if x.used == 0 {
		*x = index{}
	} else if size := len(x.byHash); size > minIndex && x.used*8 < size {
		x.rebuild(size / 4)
	}
}

// rebuild makes a hash table with a number of cells, a power of two. Free entries at the end are dropped; those
// between others are reused.
func (x *index) rebuild(cells int) {
	n := len(x.entries)
	for n > 1 && x.entries[n-1].plan == nil {
		n--
	}
	if n < len(x.entries)/2 {
		x.entries = append(make([]entry, 0, n+n/2), x.entries[:n]...)
	} else {
		x.entries = x.entries[:n]
	}
	x.byHash = make([]uint64, cells)
	x.free = 0
	for id := n - 1; id > 0; id-- {
		if e := &x.entries[id]; e.plan != nil {
			x.link(uint32(id))
		} else {
			*e = entry{refs: x.free}
			x.free = uint32(id)
		}
	}
}

func (x *index) bytes() int {
	return cap(x.entries)*int(unsafe.Sizeof(entry{})) + len(x.byHash)*8
}
