package share

import (
	"hash/maphash"
	"reflect"
	"strings"
	"unsafe"
)

// own returns a copy of n values of p at data, and of everything below them, that nothing else
// refers to: what the table compares with. Strings cannot change, and are those of the table
// where it has them.
func (t *Table) own(p *plan, data unsafe.Pointer, n int) unsafe.Pointer {
	fresh := t.clone(p, data, n)
	if len(p.nodes) > 0 {
		for i := range n {
			t.ownMem(p.nodes, unsafe.Add(fresh, uintptr(i)*p.size))
		}
	}
	return fresh
}

// ownMem replaces what the value at an address refers to by copies.
func (t *Table) ownMem(nodes []op, at unsafe.Pointer) {
	for i := range nodes {
		o := &nodes[i]
		slot := unsafe.Add(at, o.off)
		switch o.kind {
		case opString:
			s := (*string)(slot)
			*s = t.ownText(*s)
		case opPointer:
			if to := (*unsafe.Pointer)(slot); *to != nil && o.elem.size > 0 {
				*to = t.own(o.elem, *to, 1)
			}
		case opSlice:
			if s := (*slice)(slot); s.len > 0 && o.elem.size > 0 {
				*s = slice{t.own(o.elem, s.data, s.len), s.len, s.len}
			}
		case opMap:
			if m := (*unsafe.Pointer)(slot); *m != nil {
				*m = t.ownMap(o.elem, slot)
			}
		case opEface, opIface:
			t.ownInterface(o, slot)
		case opArray:
			for j := range o.size {
				t.ownMem(o.elem.nodes, unsafe.Add(slot, j*o.elem.size))
			}
		}
	}
}

func (t *Table) ownInterface(o *op, slot unsafe.Pointer) {
	e := (*eface)(slot)
	if e.typ == nil {
		return
	}
	switch p := dynamic(o, slot); {
	case p.direct:
		t.ownMem(p.nodes, unsafe.Pointer(&e.data))
	case p.pinned || p.size == 0:
	default:
		e.data = t.own(p, e.data, 1)
	}
}

func (t *Table) ownMap(p *plan, slot unsafe.Pointer) unsafe.Pointer {
	r := t.collect(p, slot)
	m := reflect.MakeMapWithSize(p.typ, r.n)
	for i := range r.n {
		t.ownMem(p.key.nodes, unsafe.Add(r.keyAt, uintptr(i)*p.key.size))
		t.ownMem(p.val.nodes, unsafe.Add(r.valAt, uintptr(i)*p.val.size))
		m.SetMapIndex(r.keys.Index(i), r.vals.Index(i))
	}
	t.giveBack(r)
	return m.UnsafePointer()
}

// ownText returns a string that is no piece of a larger buffer.
func (t *Table) ownText(s string) string {
	if len(s) < minText {
		return s
	}
	data := unsafe.Pointer(unsafe.StringData(s))
	if id := t.find(&t.walker, maphash.String(seed, s), text, data, len(s)); id != 0 {
		return textOf(t.entries[id].at, len(s))
	}
	return strings.Clone(s)
}
