package share

import (
	"reflect"
	"sync"
	"unsafe"
)

var walkers = sync.Pool{New: func() any { return new(walker) }}

// Equal reports whether a and b are the same to the last bit: nil and empty slices and
// maps differ, a NaN equals itself, the dynamic types in interfaces are the same,
// and unexported fields count. Functions, channels, locks and what else counts by
// identity must be the same one. The capacity of slices does not count.
func Equal(a, b any) bool {
	w := walkers.Get().(*walker)
	equal := w.equalInterface(&anyOp, unsafe.Pointer(&a), unsafe.Pointer(&b))
	if w.over {
		equal = reflect.DeepEqual(a, b) // it minds circles
	}
	w.reset()
	walkers.Put(w)
	return equal
}

// Hash returns a hash of all of obj: objects that are Equal have the same one within a
// process. Objects whose pointers run in circles all have the hash 0.
func Hash(obj any) uint64 {
	w := walkers.Get().(*walker)
	h := w.hashInterface(&anyOp, unsafe.Pointer(&obj))
	if w.over {
		h = 0
	}
	w.reset()
	walkers.Put(w)
	return h
}

func equalRaw(a, b unsafe.Pointer, n uintptr) bool {
	switch n {
	case 1:
		return *(*uint8)(a) == *(*uint8)(b)
	case 4:
		return *(*uint32)(a) == *(*uint32)(b)
	case 8:
		return *(*uint64)(a) == *(*uint64)(b)
	}
	return textOf(a, int(n)) == textOf(b, int(n))
}

func (w *walker) equalMem(p *plan, a, b unsafe.Pointer) bool {
	for i := range p.ops {
		o := &p.ops[i]
		x, y := unsafe.Add(a, o.off), unsafe.Add(b, o.off)
		switch o.kind {
		case opRaw:
			if !equalRaw(x, y, o.size) {
				return false
			}
		case opString:
			if *(*string)(x) != *(*string)(y) {
				return false
			}
		case opPointer:
			to, too := *(*unsafe.Pointer)(x), *(*unsafe.Pointer)(y)
			if to != too && (to == nil || too == nil || !w.equalBlock(o.elem, to, too, 1)) {
				return false
			}
		case opSlice:
			s, t := (*slice)(x), (*slice)(y)
			if s.len != t.len || (s.data == nil) != (t.data == nil) || !w.equalBlock(o.elem, s.data, t.data, s.len) {
				return false
			}
		case opMap:
			if !w.equalMap(o.elem, x, y) {
				return false
			}
		case opEface, opIface:
			if !w.equalInterface(o, x, y) {
				return false
			}
		case opArray:
			for j := range o.size {
				if !w.equalMem(o.elem, unsafe.Add(x, j*o.elem.size), unsafe.Add(y, j*o.elem.size)) {
					return false
				}
			}
		}
	}
	return true
}

// equalBlock compares n values of plan p in a row.
func (w *walker) equalBlock(p *plan, a, b unsafe.Pointer, n int) bool {
	if a == b || p.size == 0 || n == 0 {
		return true
	}
	if p.raw {
		return equalRaw(a, b, uintptr(n)*p.size)
	}
	if !w.enter() {
		return false
	}
	equal := true
	for i := 0; i < n && equal; i++ {
		off := uintptr(i) * p.size
		equal = w.equalMem(p, unsafe.Add(a, off), unsafe.Add(b, off))
	}
	w.depth--
	return equal
}

func (w *walker) equalInterface(o *op, a, b unsafe.Pointer) bool {
	x, y := (*eface)(a), (*eface)(b)
	if x.typ != y.typ {
		return false
	}
	if x.typ == nil || x.data == y.data {
		return true
	}
	p := dynamic(o, a)
	if p.direct {
		return w.equalMem(p, unsafe.Pointer(&x.data), unsafe.Pointer(&y.data))
	}
	return !p.pinned && w.equalBlock(p, x.data, y.data, 1)
}

func (w *walker) equalMap(p *plan, a, b unsafe.Pointer) bool {
	m, n := *(*unsafe.Pointer)(a), *(*unsafe.Pointer)(b)
	if m == n {
		return true
	}
	if m == nil || n == nil || !w.enter() {
		return false
	}
	equal := false
	switch p.form {
	case mapStrings:
		equal = equalStrings(*(*map[string]string)(a), *(*map[string]string)(b))
	case mapStringAny:
		equal = w.equalStringAny(*(*map[string]any)(a), *(*map[string]any)(b))
	default:
		equal = w.equalRows(p, a, b)
	}
	w.depth--
	return equal
}

func equalStrings(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if other, ok := b[k]; !ok || other != v {
			return false
		}
	}
	return true
}

func (w *walker) equalStringAny(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	// Interfaces on the stack would escape into reflection, one by one.
	at := len(w.compared)
	equal := true
	for k, v := range a {
		other, ok := b[k]
		w.compared = append(w.compared[:at], v, other)
		if !ok || !w.equalInterface(&anyOp, unsafe.Pointer(&w.compared[at]), unsafe.Pointer(&w.compared[at+1])) {
			equal = false
			break
		}
	}
	clear(w.compared[at:])
	w.compared = w.compared[:at]
	return equal
}

// equalRows compares maps of any form. Reflection has no way to look a key up that does
// not allocate, so small maps are laid out and searched.
func (w *walker) equalRows(p *plan, a, b unsafe.Pointer) bool {
	other := reflect.NewAt(p.typ, b).Elem()
	if reflect.NewAt(p.typ, a).Elem().Len() != other.Len() {
		return false
	}
	r := w.collect(p, a)
	var s *rows
	small := r.n <= 16
	if small {
		s = w.collect(p, b)
	} else {
		s = w.take(p, 1)
		s.n = 1
	}
	equal := true
	for i := 0; i < r.n && equal; i++ {
		j := 0
		if small {
			j = s.find(unsafe.Add(r.keyAt, uintptr(i)*p.key.size), w)
		} else if v := other.MapIndex(r.keys.Index(i)); v.IsValid() {
			s.vals.Index(0).Set(v)
		} else {
			j = -1
		}
		equal = j >= 0 && w.equalMem(p.val, unsafe.Add(r.valAt, uintptr(i)*p.val.size),
			unsafe.Add(s.valAt, uintptr(j)*p.val.size))
	}
	w.giveBack(r)
	w.giveBack(s)
	return equal
}

// find returns the place of a key, or -1.
func (r *rows) find(key unsafe.Pointer, w *walker) int {
	for i := range r.n {
		if w.equalMem(r.of.key, key, unsafe.Add(r.keyAt, uintptr(i)*r.of.key.size)) {
			return i
		}
	}
	return -1
}
