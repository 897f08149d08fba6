package share

import "unsafe"

// An entry is a part that stored objects have in common: a string, a block of n values,
// or a map.
type entry struct {
	at   unsafe.Pointer // the part that objects point at; it is never read here
	own  unsafe.Pointer // an equal one that nobody else has, to compare with; for strings, which cannot change, the same
	plan *plan          // text for strings; nil while the entry is free
	uses Uses           // of the entries below it
	n    uint32         // values in a row; 0 for maps
	hash uint32
	refs uint32 // uses by stored objects and by other entries; the next free entry while it is free
}

// index finds entries by what they contain. It is an open hash table without
// gravestones; entries are known by their number, from 1, which stays as long as the entry does.
type index struct {
	entries []entry
	free    uint32
	used    int
	byHash  []uint64 // hash and number of an entry
}

const minIndex = 64

func fold(hash uint64) uint32 { return uint32(hash ^ hash>>32) }

// find returns the entry with these contents, or 0.
func (x *index) find(w *walker, hash uint64, p *plan, at unsafe.Pointer, n int) uint32 {
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
		if e.plan != p || int(e.n) != n {
			continue
		}
		if p.raw {
			if size := n * int(p.size); textOf(e.own, size) == textOf(at, size) {
				return uint32(cell)
			}
		} else if n > 0 {
			if w.equalBlock(p, e.own, at, n) {
				return uint32(cell)
			}
		} else {
			w.left, w.right = e.own, at
			if w.equalMap(p, unsafe.Pointer(&w.left), unsafe.Pointer(&w.right)) {
				return uint32(cell)
			}
		}
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
			x.entries = make([]entry, 1, minIndex) // there is no entry 0
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

// remove takes an entry out. Cells behind it that its place kept from their own move up.
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

// shrink gives memory back when little is left.
func (x *index) shrink() {
	if x.used == 0 {
		*x = index{}
	} else if size := len(x.byHash); size > minIndex && x.used*8 < size {
		x.rebuild(size / 4)
	}
}

// rebuild makes room for a number of cells, a power of two. Free entries at the end are given
// back; those between others are used again.
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
