package share

import (
	"reflect"
	"unsafe"
)

// rows are the entries of one map as two blocks of memory, so that plans can walk them: the entries of a map have no
// addresses.
type rows struct {
	of           *plan
	keys, vals   reflect.Value // slices
	keyAt, valAt unsafe.Pointer
	n            int
}

// collect copies the entries of a map from mapAt. The caller calls giveBack when it is done with them.
func (w *walker) collect(p *plan, from any) *rows {
	m := reflect.ValueOf(from)
	r := w.take(p, m.Len())
	w.iter.Reset(m)
	for w.iter.Next() {
		r.keys.Index(r.n).SetIterKey(&w.iter)
		r.vals.Index(r.n).SetIterValue(&w.iter)
		r.n++
	}
	w.iter.Reset(reflect.Value{})
	return r
}

// take returns rows with room for n entries.
func (w *walker) take(p *plan, n int) *rows {
	spare := w.spare[p]
	if len(spare) > 0 {
		r := spare[len(spare)-1]
		if r.keys.Len() >= n {
			w.spare[p] = spare[:len(spare)-1]
			return r
		}
	}
	n = max(n, 8)
	r := &rows{of: p, keys: reflect.MakeSlice(p.key.slice, n, n), vals: reflect.MakeSlice(p.val.slice, n, n)}
	r.keyAt, r.valAt = r.keys.UnsafePointer(), r.vals.UnsafePointer()
	return r
}

// giveBack clears r and keeps it for the next map of its type.
func (w *walker) giveBack(r *rows) {
	for i := range r.n {
		r.keys.Index(i).SetZero()
		r.vals.Index(i).SetZero()
	}
	r.n = 0
	if r.keys.Len() > 64 || len(w.spare[r.of]) >= 16 {
		return
	}
	if w.spare == nil {
		w.spare = map[*plan][]*rows{}
	}
	w.spare[r.of] = append(w.spare[r.of], r)
}
