package share

import "unsafe"

// An entry is a part that stored objects have in common: a string, a block of n values,
// or a map.
type entry struct {
	at   unsafe.Pointer
	plan *plan  // text for strings; nil while the entry is free
	n    uint32 // values in a row; 0 for maps
	hash uint32
	refs uint32 // uses by stored objects and by other entries; the next free entry while it is free
}

// index finds entries by what they contain and by where they lie. Both are open
// hash tables without gravestones; entries are known by their number, from 1.
type index struct {
	entries []entry
	free    uint32
	used    int
	byHash  []uint64 // hash and number of an entry
	byPlace []uint32 // number of an entry
}

const minIndex = 64

func fold(hash uint64) uint32 { return uint32(hash ^ hash>>32) }

func place(at unsafe.Pointer) uint32 {
	return uint32(uint64(uintptr(at)) * 0x9e3779b97f4a7c15 >> 32)
}

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
		if e.at == at {
			return uint32(cell)
		}
		if p.raw {
			if size := n * int(p.size); textOf(e.at, size) == textOf(at, size) {
				return uint32(cell)
			}
		} else if n > 0 {
			if w.equalBlock(p, e.at, at, n) {
				return uint32(cell)
			}
		} else {
			w.left, w.right = e.at, at
			if w.equalMap(p, unsafe.Pointer(&w.left), unsafe.Pointer(&w.right)) {
				return uint32(cell)
			}
		}
	}
}

// locate returns the entry that lies at an address, or 0.
func (x *index) locate(p *plan, at unsafe.Pointer, n int) uint32 {
	if x.used == 0 {
		return 0
	}
	mask := uint32(len(x.byPlace) - 1)
	for i := place(at) & mask; ; i = (i + 1) & mask {
		id := x.byPlace[i]
		if id == 0 {
			return 0
		}
		if e := &x.entries[id]; e.at == at && e.plan == p && int(e.n) == n {
			return id
		}
	}
}

// add makes an entry with one use.
func (x *index) add(hash uint64, p *plan, at unsafe.Pointer, n int) {
	if (x.used+1)*4 > len(x.byHash)*3 {
		x.rebuild(max(minIndex, len(x.byHash)*2))
	}
	id := x.free
	if id != 0 {
		x.free = x.entries[id].refs
	} else {
		id = uint32(len(x.entries))
		x.entries = append(x.entries, entry{})
	}
	x.entries[id] = entry{at: at, plan: p, n: uint32(n), hash: fold(hash), refs: 1}
	x.used++
	x.link(id)
}

func (x *index) link(id uint32) {
	e := &x.entries[id]
	mask := uint32(len(x.byHash) - 1)
	i := e.hash & mask
	for x.byHash[i] != 0 {
		i = (i + 1) & mask
	}
	x.byHash[i] = uint64(e.hash)<<32 | uint64(id)
	i = place(e.at) & mask
	for x.byPlace[i] != 0 {
		i = (i + 1) & mask
	}
	x.byPlace[i] = id
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
	i = place(e.at) & mask
	for x.byPlace[i] != id {
		i = (i + 1) & mask
	}
	for j := (i + 1) & mask; x.byPlace[j] != 0; j = (j + 1) & mask {
		if home := place(x.entries[x.byPlace[j]].at) & mask; (j-home)&mask >= (j-i)&mask {
			x.byPlace[i], i = x.byPlace[j], j
		}
	}
	x.byPlace[i] = 0
	*e = entry{refs: x.free}
	x.free = id
	x.used--
}

// shrink gives memory back when little is left. Numbers of entries change.
func (x *index) shrink() {
	if x.used == 0 {
		*x = index{}
	} else if size := len(x.byHash); size > minIndex && x.used*8 < size {
		x.rebuild(size / 4)
	}
}

// rebuild moves the entries together and makes room for a number of cells, a power of two.
func (x *index) rebuild(cells int) {
	old := x.entries
	x.entries = make([]entry, 1, x.used+x.used/2+16)
	x.byHash, x.byPlace = make([]uint64, cells), make([]uint32, cells)
	x.free = 0
	for _, e := range old {
		if e.plan != nil {
			x.entries = append(x.entries, e)
			x.link(uint32(len(x.entries) - 1))
		}
	}
}

func (x *index) bytes() int {
	return cap(x.entries)*int(unsafe.Sizeof(entry{})) + len(x.byHash)*8 + len(x.byPlace)*4
}
