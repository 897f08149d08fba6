package share

import (
	"maps"
	"reflect"
	"unsafe"
)

// shareMap returns a map that equals one from mapAt, which is not nil: the table's if it has an equal one, else a map
// whose keys and values are the table's where it has equal ones.
func (t *Table) shareMap(p *plan, m any) any {
	node := t.nodes[t.next]
	if id := t.use(node.hash, part{plan: p, value: m}); id != 0 {
		t.next = node.end
		return t.entries[id].value()
	}
	t.next++
	enters, first := t.enters(node.hash), len(t.uses)
	var ours any
	if enters {
		ours = t.ownMap(p, m) // as in shareBlock
	}
	t.inEntry = t.inEntry || enters
	switch p.form {
	case mapStrings:
		m = t.shareStrings(m.(map[string]string), enters)
	case mapStringAny:
		m = t.shareStringAny(m.(map[string]any), int(node.pair), enters)
	default:
		m = t.shareRows(p, m, enters)
		t.next = node.end
	}
	if enters {
		t.inEntry = false
		t.addValue(node.hash, p, m, ours, first)
	}
	return m
}

// shareStrings returns a map with the table's strings, which is a copy if fresh is set or m may not be written to.
// Storing under an existing key replaces the key's string and moves nothing, so m is changed while it is walked.
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

// shareStringAny is shareStrings for maps of interfaces. Their entries are in t.pairs from first on.
func (t *Table) shareStringAny(m map[string]any, first int, fresh bool) map[string]any {
	to, own := m, t.owned
	if fresh {
		to, own = maps.Clone(m), true
	}
	for i := range len(m) {
		e := t.pairs[first+i]
		val, changed := t.shareAny(e.val)
		key := t.shareString(e.key)
		if sameText(e.key, key) && !changed {
			continue
		}
		if !own {
			to, own = maps.Clone(m), true
		}
		to[key] = val
	}
	return to
}

// shareRows is for maps of any other form. Their entries are copied and hashed once more, because the first walk met
// them in another order. That is done only for maps that the table does not have.
func (t *Table) shareRows(p *plan, from any, fresh bool) any {
	m := reflect.ValueOf(from)
	r := t.collect(p, from)
	f := frame{p: p.val, at: r.valAt, n: r.n, own: true}
	copied := fresh
	first := len(t.nodes)
	for i := range r.n {
		f.changed = false
		t.hashMem(p.val, unsafe.Add(r.valAt, uintptr(i)*p.val.size), 0)
		t.next = int32(first)
		t.shareMem(&f, p.val.nodes, uintptr(i)*p.val.size)
		t.nodes = t.nodes[:first]
		if p.key.kind == reflect.String {
			k := (*string)(unsafe.Add(r.keyAt, uintptr(i)*p.key.size))
			if key := t.shareString(*k); !sameText(*k, key) {
				*k, f.changed = key, true
			}
		}
		if f.changed && t.owned && !fresh {
			m.SetMapIndex(r.keys.Index(i), r.vals.Index(i))
		} else if f.changed {
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
	return m.Interface()
}
