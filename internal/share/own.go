package share

import (
	"hash/maphash"
	"reflect"
	"strings"
	"unsafe"
)

// own returns a copy of n values of p at data and of everything below them that nothing else refers to: what an entry
// is compared by. Strings cannot change, so they are those of the table where it has them.
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
			if s := sliceAt(slot); len(*s) > 0 && o.elem.size > 0 {
				*s = blockSlice(t.own(o.elem, dataOf(*s), len(*s)), len(*s))
			}
		case opMap:
			if m := o.elem.mapAt(slot); !isNil(m) {
				o.elem.setMap(slot, t.ownMap(o.elem, m))
			}
		case opAny, opInterface:
			if x := o.load(slot); x != nil {
				o.store(slot, t.ownAny(x))
			}
		case opArray:
			for j := range o.size {
				t.ownMem(o.elem.nodes, unsafe.Add(slot, j*o.elem.size))
			}
		}
	}
}

// ownAny does for a value in an interface what own does for others.
func (t *Table) ownAny(x any) any {
	switch v := x.(type) {
	case nil, bool, int64, float64:
		return x
	case string:
		return t.ownText(v)
	case map[string]any:
		if v == nil {
			return x
		}
		return t.ownMap(mapPlan, v)
	case []any:
		if len(v) == 0 {
			return x
		}
		return unsafe.Slice((*any)(t.own(anyPlan, unsafe.Pointer(unsafe.SliceData(v)), len(v))), len(v))
	}
	switch p := planOf(reflect.TypeOf(x)); {
	case p.isPointer():
		if elem, to := p.pointee(x); to != nil {
			return p.pointerTo(t.own(elem, to, 1))
		}
		return x
	case p.isMap():
		if isNil(x) {
			return x
		}
		return p.asMap(t.ownMap(p, p.mapIn(x)))
	case p.small() || p.pinned:
		return x
	default:
		at := copyOf(p, x)
		t.ownMem(p.nodes, at)
		return valueAt(p, at)
	}
}

// ownMap does for a map from mapAt what own does for others.
func (t *Table) ownMap(p *plan, from any) any {
	r := t.collect(p, from)
	m := reflect.MakeMapWithSize(reflect.TypeOf(from), r.n)
	for i := range r.n {
		t.ownMem(p.key.nodes, unsafe.Add(r.keyAt, uintptr(i)*p.key.size))
		t.ownMem(p.val.nodes, unsafe.Add(r.valAt, uintptr(i)*p.val.size))
		m.SetMapIndex(r.keys.Index(i), r.vals.Index(i))
	}
	t.giveBack(r)
	return m.Interface()
}

// ownText returns an equal string that is not a piece of a larger buffer.
func (t *Table) ownText(s string) string {
	if len(s) < minText {
		return s
	}
	id := t.find(&t.walker, maphash.String(seed, s), part{plan: text, at: textData(s), n: len(s)})
	if id != 0 {
		return textOf(t.entries[id].at, len(s))
	}
	return strings.Clone(s)
}
