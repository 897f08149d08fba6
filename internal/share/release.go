package share

import (
	"reflect"
	"unsafe"
)

// releaseMem gives up the uses of all entries that the value at address at refers to. It
// stops where shareMem did: at entries, which hold what is below them.
func (t *Table) releaseMem(nodes []op, at unsafe.Pointer) {
	for i := range nodes {
		o := &nodes[i]
		slot := unsafe.Add(at, o.off)
		switch o.kind {
		case opString:
			t.releaseString(*(*string)(slot))
		case opPointer:
			if to := *(*unsafe.Pointer)(slot); to != nil && o.elem.size > 0 {
				t.releaseBlock(o.elem, to, 1)
			}
		case opSlice:
			if s := (*slice)(slot); s.len > 0 && o.elem.size > 0 {
				t.releaseBlock(o.elem, s.data, s.len)
			}
		case opMap:
			if m := *(*unsafe.Pointer)(slot); m != nil {
				if id := t.locate(o.elem, m, 0); id != 0 {
					t.drop(id)
				} else {
					t.releaseMap(o.elem, slot)
				}
			}
		case opEface, opIface:
			t.releaseInterface(o, slot)
		case opArray:
			for j := range o.size {
				t.releaseMem(o.elem.nodes, unsafe.Add(slot, j*o.elem.size))
			}
		}
	}
}

func (t *Table) releaseString(s string) {
	if len(s) < minText {
		return
	}
	if id := t.locate(text, unsafe.Pointer(unsafe.StringData(s)), len(s)); id != 0 {
		t.drop(id)
	}
}

func (t *Table) releaseBlock(p *plan, at unsafe.Pointer, n int) {
	if id := t.locate(p, at, n); id != 0 {
		t.drop(id)
		return
	}
	t.releaseValues(p, at, n)
}

func (t *Table) releaseValues(p *plan, at unsafe.Pointer, n int) {
	if len(p.nodes) == 0 || !t.enter() {
		return
	}
	for i := range n {
		t.releaseMem(p.nodes, unsafe.Add(at, uintptr(i)*p.size))
	}
	t.depth--
}

func (t *Table) releaseInterface(o *op, slot unsafe.Pointer) {
	e := (*eface)(slot)
	if e.typ == nil {
		return
	}
	p := dynamic(o, slot)
	switch {
	case p.direct:
		t.releaseMem(p.nodes, unsafe.Pointer(&e.data))
	case p.pinned || p.small(e.data):
	case p.kind == reflect.String:
		// Box and string are one part: the string alone was never counted.
		if id := t.locate(p, e.data, 1); id != 0 {
			t.drop(id)
		}
	default:
		t.releaseBlock(p, e.data, 1)
	}
}

func (t *Table) releaseMap(p *plan, slot unsafe.Pointer) {
	if !t.enter() {
		return
	}
	switch p.form {
	case mapStrings:
		for k, v := range *(*map[string]string)(slot) {
			t.releaseString(k)
			t.releaseString(v)
		}
	case mapStringAny:
		m := *(*map[string]any)(slot)
		first := len(t.pairs)
		for k, v := range m {
			t.releaseString(k)
			t.pairs = append(t.pairs, pair{val: v})
		}
		for i := range len(m) {
			t.releaseInterface(&anyOp, unsafe.Pointer(&t.pairs[first+i].val))
		}
	default:
		r := t.collect(p, slot)
		for i := range r.n {
			if p.key.kind == reflect.String {
				t.releaseString(*(*string)(unsafe.Add(r.keyAt, uintptr(i)*p.key.size)))
			}
			t.releaseMem(p.val.nodes, unsafe.Add(r.valAt, uintptr(i)*p.val.size))
		}
		t.giveBack(r)
	}
	t.depth--
}

// drop gives up one use of an entry. With the last one it leaves the table and gives
// up what it uses itself.
func (t *Table) drop(id uint32) {
	e := &t.entries[id]
	if e.refs--; e.refs > 0 {
		return
	}
	gone := *e
	t.remove(id)
	if gone.n > 0 {
		t.releaseValues(gone.plan, gone.at, int(gone.n))
		return
	}
	t.releaseMap(gone.plan, unsafe.Pointer(&gone.at))
}
