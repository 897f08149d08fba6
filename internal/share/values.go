package share

import (
	"reflect"
	"strings"
	"unsafe"
)

// shareAny returns an equal value for what an interface holds, and whether it is another one. What an interface holds
// is never written to, since it may be in read-only memory.
func (t *Table) shareAny(x any) (any, bool) {
	switch v := x.(type) {
	case nil, bool, int64, float64:
		return x, false
	case string:
		if len(v) < minText {
			return x, false
		}
		return t.shareAnyString(x, v)
	case map[string]any:
		if v == nil {
			return x, false
		}
		m := t.shareMap(mapPlan, v)
		return m, !sameMap(m, x)
	case []any:
		return t.shareAnySlice(x, v)
	}
	switch p := planOf(reflect.TypeOf(x)); {
	case p.isPointer():
		elem, to := p.pointee(x)
		if to == nil {
			return x, false
		}
		if block := t.shareBlock(elem, to, 1, 1, t.owned); block != to {
			return p.pointerTo(block), true
		}
		return x, false
	case p.isMap():
		if isNil(x) {
			return x, false
		}
		m := t.shareMap(p, p.mapIn(x))
		return p.asMap(m), !sameMap(m, x)
	case p.small():
		return x, false
	default:
		return t.shareCopy(p, x)
	}
}

// shareAnyString is for strings in interfaces. The interface's memory and the string are one part.
func (t *Table) shareAnyString(x any, s string) (any, bool) {
	node := t.nodes[t.next]
	t.next++
	if id := t.use(node.hash, part{plan: stringPlan, value: x}); id != 0 {
		return t.entries[id].value(), true
	}
	enters := t.enters(node.hash)
	if !enters && !t.inEntry {
		return x, false
	}
	x = strings.Clone(s)
	if enters {
		cell := new(any)
		*cell = x
		// Nothing can change the string, so the entry is compared by the value that it hands out.
		t.addPart(node.hash, stringPlan, unsafe.Pointer(cell), unsafe.Pointer(cell), 0, len(t.uses))
	}
	return x, true
}

// shareAnySlice is for slices of interfaces in interfaces. The interface's memory and the elements are one part.
func (t *Table) shareAnySlice(x any, v []any) (any, bool) {
	if len(v) == 0 {
		if v == nil {
			return x, false
		}
		return emptyAnySlice, true
	}
	node := t.nodes[t.next]
	if id := t.use(node.hash, part{plan: anySlicePlan, value: x}); id != 0 {
		t.next = node.end
		return t.entries[id].value(), true
	}
	t.next++
	enters, first := t.enters(node.hash), len(t.uses)
	var ours any
	if enters {
		ours = t.ownAny(x) // as in shareBlock
	}
	t.inEntry = t.inEntry || enters
	at, changed := unsafe.Pointer(unsafe.SliceData(v)), false
	if block := t.shareBlock(anyPlan, at, len(v), cap(v), t.owned); block != at || len(v) != cap(v) {
		x, changed = unsafe.Slice((*any)(block), len(v)), true
	}
	if enters {
		t.inEntry = false
		t.addValue(node.hash, anySlicePlan, x, ours, first)
	}
	return x, changed
}

// shareCopy is for values of types that decoders do not put into interfaces. It works on a copy, and hashes the copy's
// parts once more: hashCopy kept no nodes of them.
func (t *Table) shareCopy(p *plan, x any) (any, bool) {
	node := t.nodes[t.next]
	t.next++
	if p.pinned {
		return x, false
	}
	if id := t.use(node.hash, part{plan: p, value: x}); id != 0 {
		return t.entries[id].value(), true
	}
	enters, first := t.enters(node.hash), len(t.uses)
	var ours any
	if enters {
		ours = t.ownAny(x)
	}
	t.inEntry = t.inEntry || enters
	f := frame{p: p, at: copyOf(p, x), n: 1, own: true}
	next, last := t.next, len(t.nodes)
	t.hashMem(p, f.at, 0)
	t.next = int32(last)
	t.shareMem(&f, p.nodes, 0)
	t.nodes, t.next = t.nodes[:last], next
	if f.changed {
		x = valueAt(p, f.at)
	}
	if enters {
		t.inEntry = false
		t.addValue(node.hash, p, x, ours, first)
	}
	return x, f.changed
}
