package share

import (
	"hash/maphash"
	"reflect"
	"strings"
	"unsafe"
)

// A frame is a block of memory in which parts are exchanged for the table's. It is copied
// before the first change unless it may be written to.
type frame struct {
	p    *plan
	at   unsafe.Pointer
	n    int
	own  bool
	diff bool // something was exchanged
}

// slot returns the address at which a change may be written.
func (t *Table) slot(f *frame, off uintptr) unsafe.Pointer {
	if !f.own {
		f.at, f.own = t.clone(f.p, f.at, f.n), true
	}
	f.diff = true
	return unsafe.Add(f.at, off)
}

// shareMem exchanges the parts that a value in f at offset off refers to. It comes by
// the same nodes in the same order as hashMem.
func (t *Table) shareMem(f *frame, nodes []op, off uintptr) {
	for i := range nodes {
		o := &nodes[i]
		off := off + o.off
		at := unsafe.Add(f.at, off)
		switch o.kind {
		case opString:
			if s := *(*str)(at); s.len >= minText {
				to := t.shareText(s, t.nodes[t.next].hash)
				t.next++
				if to != s.data {
					(*str)(t.slot(f, off)).data = to
				}
			}
		case opPointer:
			if to := *(*unsafe.Pointer)(at); to != nil && o.elem.size > 0 {
				if part := t.shareBlock(o.elem, to, 1, 1, t.owned); part != to {
					*(*unsafe.Pointer)(t.slot(f, off)) = part
				}
			}
		case opSlice:
			t.shareSlice(f, o.elem, off)
		case opMap:
			if m := *(*unsafe.Pointer)(at); m != nil {
				if part := t.shareMap(o.elem, at); part != m {
					*(*unsafe.Pointer)(t.slot(f, off)) = part
				}
			}
		case opEface, opIface:
			t.shareInterface(f, o, off)
		case opArray:
			for j := range o.size {
				t.shareMem(f, o.elem.nodes, off+j*o.elem.size)
			}
		}
	}
}

func (t *Table) shareSlice(f *frame, elem *plan, off uintptr) {
	s := *(*slice)(unsafe.Add(f.at, off))
	switch {
	case s.data == nil:
		return
	case s.len == 0 || elem.size == 0:
		if s.cap > s.len {
			*(*slice)(t.slot(f, off)) = slice{emptySlice, s.len, s.len}
		}
		return
	}
	if part := t.shareBlock(elem, s.data, s.len, s.cap, t.owned); part != s.data || s.cap != s.len {
		*(*slice)(t.slot(f, off)) = slice{part, s.len, s.len}
	}
}

// shareInterface leaves the type word alone. A box may lie in read-only memory, so it is
// never written to.
func (t *Table) shareInterface(f *frame, o *op, off uintptr) {
	at := unsafe.Add(f.at, off)
	e := (*eface)(at)
	if e.typ == nil {
		return
	}
	p := dynamic(o, at)
	if p.direct {
		t.shareMem(f, p.nodes, off+unsafe.Offsetof(eface{}.data))
		return
	}
	if p.pinned || p.small(e.data) {
		return
	}
	var part unsafe.Pointer
	if p.kind == reflect.String {
		part = t.shareBox(p, e.data)
	} else {
		part = t.shareBlock(p, e.data, 1, 1, false)
	}
	if part != e.data {
		(*eface)(t.slot(f, off)).data = part
	}
}

// use returns the table's part with these contents and counts a use, or nil.
func (t *Table) use(hash uint64, p *plan, at unsafe.Pointer, n int) unsafe.Pointer {
	id := t.find(&t.walker, hash, p, at, n)
	if id == 0 {
		return nil
	}
	e := &t.entries[id]
	e.refs++
	t.uses = append(t.uses, id)
	return e.at
}

// addPart adds an entry for a part, of which own is a copy, and whose own uses are those since first.
func (t *Table) addPart(hash uint64, p *plan, at, own unsafe.Pointer, n, first int) {
	below := t.since(first)
	t.uses = append(t.uses, t.add(hash, p, at, own, n, below))
}

// enters reports whether a part that the table does not have becomes an entry. Parts
// below a new entry do not: with few exceptions nothing but that entry uses them,
// and those that others use come by themselves at the next sighting.
func (t *Table) enters(hash uint64) bool { return !t.inEntry && t.seen.again(hash) }

// A twin is a part that the same object has had before. Two places of one object that are
// equal, such as the address of a pod, are not worth an entry that nothing else
// uses. Only parts with nothing below them: uses are counted once for every way
// that leads to an entry.
type twin struct {
	hash uint64
	at   unsafe.Pointer
	plan *plan
	n    int
}

// twin returns the equal part that the object had before, or nil and remembers this one.
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

func (t *Table) shareText(s str, hash uint64) unsafe.Pointer {
	if part := t.use(hash, text, s.data, s.len); part != nil {
		return part
	}
	if twin := t.twin(hash, text, s.data, s.len); twin != nil {
		return twin
	}
	enters := t.enters(hash)
	if !enters && !t.inEntry {
		return s.data
	}
	// A string may be a piece of a large buffer, which an entry would keep.
	fresh := unsafe.Pointer(unsafe.StringData(strings.Clone(textOf(s.data, s.len))))
	if enters {
		t.addPart(hash, text, fresh, fresh, s.len, len(t.uses))
	}
	return fresh
}

// shareBlock returns what stands in place of n values of plan p at address at. Entries
// are fresh memory: no object points at an entry that Share did not count.
func (t *Table) shareBlock(p *plan, at unsafe.Pointer, n, room int, own bool) unsafe.Pointer {
	node := t.nodes[t.next]
	if part := t.use(node.hash, p, at, n); part != nil {
		t.next = node.end
		return part
	}
	if twin := t.twin(node.hash, p, at, n); twin != nil {
		t.next = node.end
		return twin
	}
	t.next++
	f := frame{p: p, at: at, n: n, own: own}
	enters, first := t.enters(node.hash), len(t.uses)
	var mine unsafe.Pointer
	if enters {
		mine = t.own(p, at, n) // before anything below it is one of the table's parts, which are not looked at
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
		t.addPart(node.hash, p, f.at, mine, n, first)
	}
	return f.at
}

// shareBox does the same for a string in an interface. Box and string are one part.
func (t *Table) shareBox(p *plan, at unsafe.Pointer) unsafe.Pointer {
	node := t.nodes[t.next]
	t.next++
	if part := t.use(node.hash, p, at, 1); part != nil {
		return part
	}
	enters := t.enters(node.hash)
	if !enters && !t.inEntry {
		return at
	}
	fresh := t.clone(p, at, 1)
	*(*string)(fresh) = strings.Clone(*(*string)(fresh))
	if enters {
		// A box in an interface cannot be written to either.
		t.addPart(node.hash, p, fresh, fresh, 1, len(t.uses))
	}
	return fresh
}

// shareString is for strings that have no node: those in maps.
func (t *Table) shareString(s string) string {
	if len(s) < minText {
		return s
	}
	x := (*str)(unsafe.Pointer(&s))
	x.data = t.shareText(*x, maphash.String(seed, s))
	return s
}

func sameText(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }
