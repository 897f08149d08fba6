package share

import (
	"maps"
	"reflect"
	"unsafe"
)

// shareMap returns what stands in place of the map at slot: the table's if it has an
// equal one, else a map whose keys and values are the table's where it has them.
func (t *Table) shareMap(p *plan, slot unsafe.Pointer) unsafe.Pointer {
	m := *(*unsafe.Pointer)(slot)
	node := t.nodes[t.next]
	if part := t.use(node.hash, p, m, 0); part != nil {
		t.next = node.end
		return part
	}
	t.next++
	enters, first := t.enters(node.hash), len(t.uses)
	var mine unsafe.Pointer
	if enters {
		mine = t.ownMap(p, slot) // as in shareBlock
	}
	t.inEntry = t.inEntry || enters
	switch p.form {
	case mapStrings:
		to := t.shareStrings(*(*map[string]string)(slot), enters)
		m = *(*unsafe.Pointer)(unsafe.Pointer(&to))
	case mapStringAny:
		to := t.shareStringAny(*(*map[string]any)(slot), int(node.pair), enters)
		m = *(*unsafe.Pointer)(unsafe.Pointer(&to))
	default:
		m = t.shareRows(p, slot, enters)
		t.next = node.end
	}
	if enters {
		t.inEntry = false
		t.addPart(node.hash, p, m, mine, 0, first)
	}
	return m
}

// Storing under a key that is there takes over the key's string and moves nothing, so
// maps that may be written to are changed while they are walked.
func (t *Table) shareStrings(m map[string]string, fresh bool) map[string]string {
	to, own := m, t.owned
	if fresh {
		to, own = maps.Clone(m), true
	}
	for k, v := range m {
		key, val := t.shareString(k), t.shareString(v)
		if sameText(k, key) && sameText(v, val) {
			continue
		}
		if !own {
			to, own = maps.Clone(m), true
		}
		to[key] = val
	}
	return to
}

func (t *Table) shareStringAny(m map[string]any, first int, fresh bool) map[string]any {
	to, own := m, t.owned
	if fresh {
		to, own = maps.Clone(m), true
	}
	for i := range len(m) {
		e := &t.pairs[first+i]
		f := frame{p: anyPlan, at: unsafe.Pointer(&e.val), n: 1, own: true}
		t.shareMem(&f, anyPlan.nodes, 0)
		key := t.shareString(e.key)
		if sameText(e.key, key) && !f.diff {
			continue
		}
		if !own {
			to, own = maps.Clone(m), true
		}
		to[key] = e.val
	}
	return to
}

// shareRows is for maps of any other form. Their entries are laid out and hashed again: the first walk
// saw them in another order, and they hold little below them. That is done for maps
// only that the table does not have.
func (t *Table) shareRows(p *plan, slot unsafe.Pointer, fresh bool) unsafe.Pointer {
	m := reflect.NewAt(p.typ, slot).Elem()
	r := t.collect(p, slot)
	f := frame{p: p.val, at: r.valAt, n: r.n, own: true}
	copied := fresh
	first := len(t.nodes)
	for i := range r.n {
		f.diff = false
		t.hashMem(p.val, unsafe.Add(r.valAt, uintptr(i)*p.val.size), 0)
		t.next = int32(first)
		t.shareMem(&f, p.val.nodes, uintptr(i)*p.val.size)
		t.nodes = t.nodes[:first]
		if p.key.kind == reflect.String {
			k := (*string)(unsafe.Add(r.keyAt, uintptr(i)*p.key.size))
			if key := t.shareString(*k); !sameText(*k, key) {
				*k, f.diff = key, true
			}
		}
		if f.diff && t.owned && !fresh {
			m.SetMapIndex(r.keys.Index(i), r.vals.Index(i))
		} else if f.diff {
			copied = true
		}
	}
	if copied {
		m = reflect.MakeMapWithSize(p.typ, r.n)
		for i := range r.n {
			m.SetMapIndex(r.keys.Index(i), r.vals.Index(i))
		}
	}
	t.giveBack(r)
	return m.UnsafePointer()
}
