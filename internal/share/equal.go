package share

import (
	"encoding/binary"
	"maps"
	"math"
	"reflect"
	"sync"
	"unsafe"
)

var walkers = sync.Pool{New: func() any { return new(walker) }}

// Equal reports whether a and b are the same to the last bit: nil and empty slices and maps differ, a NaN equals
// itself, the dynamic types in interfaces are the same, and unexported fields count. Functions, channels, locks and
// other values that are compared by address must be the same one. The capacity of slices does not count.
func Equal(a, b any) bool {
	w := walkers.Get().(*walker)
	equal := w.equalAny(a, b)
	if w.over {
		equal = reflect.DeepEqual(a, b) // it handles cycles
	}
	w.reset()
	walkers.Put(w)
	return equal
}

// Hash returns a hash of all of obj. Objects that are Equal have the same hash within a process. Objects with cycles
// all have the hash 0.
func Hash(obj any) uint64 {
	w := walkers.Get().(*walker)
	h := w.hashAny(obj)
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
		return binary.NativeEndian.Uint32((*[4]byte)(a)[:]) == binary.NativeEndian.Uint32((*[4]byte)(b)[:])
	case 8:
		return binary.NativeEndian.Uint64((*[8]byte)(a)[:]) == binary.NativeEndian.Uint64((*[8]byte)(b)[:])
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
			p, q := *(*unsafe.Pointer)(x), *(*unsafe.Pointer)(y)
			if p != q && (p == nil || q == nil || !w.equalBlock(o.elem, p, q, 1)) {
				return false
			}
		case opSlice:
			s, t := *sliceAt(x), *sliceAt(y)
			if len(s) != len(t) || (s == nil) != (t == nil) || !w.equalBlock(o.elem, dataOf(s), dataOf(t), len(s)) {
				return false
			}
		case opMap:
			if !w.equalMap(o.elem, o.elem.mapAt(x), o.elem.mapAt(y)) {
				return false
			}
		case opAny, opInterface:
			if !w.equalAny(o.load(x), o.load(y)) {
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

// equalBlock compares n consecutive values of plan p.
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

// equalAny compares the dynamic types and the values of two interfaces.
func (w *walker) equalAny(x, y any) bool {
	switch a := x.(type) {
	case nil:
		return y == nil
	case string:
		b, ok := y.(string)
		return ok && a == b
	case bool:
		b, ok := y.(bool)
		return ok && a == b
	case int64:
		b, ok := y.(int64)
		return ok && a == b
	case float64:
		b, ok := y.(float64)
		return ok && math.Float64bits(a) == math.Float64bits(b)
	case map[string]any:
		b, ok := y.(map[string]any)
		return ok && w.equalMap(mapPlan, a, b)
	case []any:
		b, ok := y.([]any)
		return ok && len(a) == len(b) && (a == nil) == (b == nil) && w.equalBlock(anyPlan,
			unsafe.Pointer(unsafe.SliceData(a)), unsafe.Pointer(unsafe.SliceData(b)), len(a))
	}
	t := reflect.TypeOf(x)
	if t != reflect.TypeOf(y) {
		return false
	}
	switch p := planOf(t); {
	case p.isPointer():
		elem, a := p.pointee(x)
		_, b := p.pointee(y)
		if a == nil || b == nil {
			return isNil(x) == isNil(y)
		}
		return w.equalBlock(elem, a, b, 1)
	case p.isMap():
		return w.equalMap(p, p.mapIn(x), p.mapIn(y))
	default:
		return w.equalBlock(p, copyOf(p, x), copyOf(p, y), 1)
	}
}

// equalMap compares two maps as mapAt returns them.
func (w *walker) equalMap(p *plan, a, b any) bool {
	if sameMap(a, b) {
		return true
	}
	if isNil(a) || isNil(b) || !w.enter() {
		return false
	}
	equal := false
	switch p.form {
	case mapStrings:
		equal = maps.Equal(a.(map[string]string), b.(map[string]string))
	case mapStringAny:
		equal = w.equalStringAny(a.(map[string]any), b.(map[string]any))
	default:
		equal = w.equalRows(p, a, b)
	}
	w.depth--
	return equal
}

func (w *walker) equalStringAny(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if other, ok := b[k]; !ok || !w.equalAny(v, other) {
			return false
		}
	}
	return true
}

// equalRows compares maps of any form. Looking up a key by reflection allocates, so the entries of small maps are
// copied and searched.
func (w *walker) equalRows(p *plan, a, b any) bool {
	other := reflect.ValueOf(b)
	if reflect.ValueOf(a).Len() != other.Len() {
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

// find returns the row of a key, or -1.
func (r *rows) find(key unsafe.Pointer, w *walker) int {
	for i := range r.n {
		if w.equalMem(r.of.key, key, unsafe.Add(r.keyAt, uintptr(i)*r.of.key.size)) {
			return i
		}
	}
	return -1
}
