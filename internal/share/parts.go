package share

import (
	"hash/maphash"
	"reflect"
	"strings"
	"unsafe"
)

// A part is what an entry can stand for: n consecutive values of a plan at an address or, if n is 0, a value: a map as
// mapAt returns it, or what an interface holds.
type part struct {
	plan  *plan
	at    unsafe.Pointer
	n     int
	value any
}

// A frame is a block of memory in which parts are replaced by the table's. It is copied before the first change
// unless it may be written to.
type frame struct {
	p       *plan
	at      unsafe.Pointer
	n       int
	own     bool // it may be written to
	changed bool
}

// slot returns the address at which a change may be written.
func (t *Table) slot(f *frame, off uintptr) unsafe.Pointer {
	if !f.own {
		f.at, f.own = t.clone(f.p, f.at, f.n), true
	}
	f.changed = true
	return unsafe.Add(f.at, off)
}

// shareMem replaces the parts that a value in f at offset off refers to. It visits the same nodes in the same order as
// hashMem.
func (t *Table) shareMem(f *frame, nodes []op, off uintptr) {
	for i := range nodes {
		o := &nodes[i]
		off := off + o.off
		at := unsafe.Add(f.at, off)
		switch o.kind {
		case opString:
			if s := *(*string)(at); len(s) >= minText {
				to := t.shareText(s, t.nodes[t.next].hash)
				t.next++
				if !sameText(s, to) {
					*(*string)(t.slot(f, off)) = to
				}
			}
		case opPointer:
			if to := *(*unsafe.Pointer)(at); to != nil && o.elem.size > 0 {
				if block := t.shareBlock(o.elem, to, 1, 1, t.owned); block != to {
					*(*unsafe.Pointer)(t.slot(f, off)) = block
				}
			}
		case opSlice:
			t.shareSlice(f, o.elem, off)
		case opMap:
			if m := o.elem.mapAt(at); !isNil(m) {
				if to := t.shareMap(o.elem, m); !sameMap(to, m) {
					o.elem.setMap(t.slot(f, off), to)
				}
			}
		case opAny, opInterface:
			if x, changed := t.shareAny(o.load(at)); changed {
				o.store(t.slot(f, off), x)
			}
		case opArray:
			for j := range o.size {
				t.shareMem(f, o.elem.nodes, off+j*o.elem.size)
			}
		}
	}
}

func (t *Table) shareSlice(f *frame, elem *plan, off uintptr) {
	s := *sliceAt(unsafe.Add(f.at, off))
	switch {
	case s == nil:
		return
	case len(s) == 0 || elem.size == 0:
		if cap(s) > len(s) {
			// A slice of the given one would keep all of its memory.
			reflect.NewAt(elem.slice, t.slot(f, off)).Elem().Set(reflect.MakeSlice(elem.slice, len(s), len(s)))
		}
		return
	}
	if block := t.shareBlock(elem, dataOf(s), len(s), cap(s), t.owned); block != dataOf(s) || cap(s) != len(s) {
		*sliceAt(t.slot(f, off)) = blockSlice(block, len(s))
	}
}

// use returns the number of the entry with the contents of a part and counts a use, or 0.
func (t *Table) use(hash uint64, x part) uint32 {
	id := t.find(&t.walker, hash, x)
	if id != 0 {
		t.entries[id].refs++
		t.uses = append(t.uses, id)
	}
	return id
}

// addPart adds an entry that objects refer to as at and that is compared by own, which equals it. The entry's own uses
// are those since first.
func (t *Table) addPart(hash uint64, p *plan, at, own unsafe.Pointer, n, first int) {
	below := t.since(first)
	t.uses = append(t.uses, t.add(hash, p, at, own, n, below))
}

// addValue is addPart for a value.
func (t *Table) addValue(hash uint64, p *plan, value, own any, first int) {
	cells := &[2]any{value, own}
	t.addPart(hash, p, unsafe.Pointer(&cells[0]), unsafe.Pointer(&cells[1]), 0, first)
}

// enters reports whether a part that the table does not have becomes an entry. Parts below a new entry do not: with
// few exceptions only that entry uses them, and the others become entries when they are seen again.
func (t *Table) enters(hash uint64) bool { return !t.inEntry && t.seen.seenBefore(hash) }

// A twin is a part that appeared earlier in the same object. Two equal parts of one object, such as the IP address of
// a pod, are not worth an entry that nothing else uses. Twins have no parts of their own: uses are counted once for
// every path that leads to an entry.
type twin struct {
	hash uint64
	at   unsafe.Pointer
	plan *plan
	n    int
}

// twin returns the equal part that the object had before, or remembers this one and returns nil.
func (t *Table) twin(hash uint64, p *plan, at unsafe.Pointer, n int) unsafe.Pointer {
	if t.inEntry || len(p.nodes) > 0 {
		return nil
	}
	if t.twins == nil {
		t.twins = new([64]twin)
	}
	x := &t.twins[hash%64]
	if x.hash == hash && x.plan == p && x.n == n && t.equalBlock(p, x.at, at, n) {
		return x.at
	}
	*x = twin{hash, at, p, n}
	return nil
}

// shareText returns an equal string.
func (t *Table) shareText(s string, hash uint64) string {
	at := textData(s)
	if id := t.use(hash, part{plan: text, at: at, n: len(s)}); id != 0 {
		return textOf(t.entries[id].at, len(s))
	}
	if twin := t.twin(hash, text, at, len(s)); twin != nil {
		return textOf(twin, len(s))
	}
	enters := t.enters(hash)
	if !enters && !t.inEntry {
		return s
	}
	// A string may be a piece of a large buffer, which an entry would keep.
	s = strings.Clone(s)
	if enters {
		t.addPart(hash, text, textData(s), textData(s), len(s), len(t.uses))
	}
	return s
}

// shareBlock returns the address of a block that equals n values of plan p at address at. Entries are new memory: no
// object refers to an entry unless Share counted it.
func (t *Table) shareBlock(p *plan, at unsafe.Pointer, n, room int, own bool) unsafe.Pointer {
	node := t.nodes[t.next]
	if id := t.use(node.hash, part{plan: p, at: at, n: n}); id != 0 {
		t.next = node.end
		return t.entries[id].at
	}
	if twin := t.twin(node.hash, p, at, n); twin != nil {
		t.next = node.end
		return twin
	}
	t.next++
	f := frame{p: p, at: at, n: n, own: own}
	enters, first := t.enters(node.hash), len(t.uses)
	var ours unsafe.Pointer
	if enters {
		ours = t.own(p, at, n) // before it refers to any of the table's parts, which are never read
	}
	if enters || room > n && slack(p, n, room) {
		f.at, f.own = t.clone(p, at, n), true
	}
	t.inEntry = t.inEntry || enters
	if len(p.nodes) > 0 {
		for i := range n {
			t.shareMem(&f, p.nodes, uintptr(i)*p.size)
		}
	}
	if enters {
		t.inEntry = false
		t.addPart(node.hash, p, f.at, ours, n, first)
	}
	return f.at
}

// shareString is for strings that have no node: those in maps.
func (t *Table) shareString(s string) string {
	if len(s) < minText {
		return s
	}
	return t.shareText(s, maphash.String(seed, s))
}
