package share

import (
	"hash/maphash"
	"reflect"
	"unsafe"
)

// Strings replaces equal strings of decoded objects by one string. It is a cache of fixed size that remembers the
// strings it saw last, so unlike a Table it needs no Release. One goroutine may use it at a time.
type Strings struct {
	walker
	texts  []string
	values []any // strings in interfaces; allocated for the first one
}

// NewStrings returns a cache that remembers up to the given number of strings, rounded up to a power of two.
func NewStrings(slots int) *Strings {
	n := 1
	for n < slots {
		n *= 2
	}
	return &Strings{texts: make([]string, n)}
}

// longText is the length from which strings are not remembered, because they are rarely equal.
const longText = 256

// Share replaces the strings of obj in place. No other code may refer to obj or anything below it.
func (s *Strings) Share(obj any) {
	s.inAny(obj)
	s.walker.reset()
}

// text returns the remembered string that equals v.
func (s *Strings) text(v string) string {
	if len(v) < minText || len(v) >= longText {
		return v
	}
	cell := &s.texts[maphash.String(seed, v)&uint64(len(s.texts)-1)]
	if *cell != v {
		*cell = v
	}
	return *cell
}

// value is text for a string in an interface x. It also reports whether the result is another string in memory.
func (s *Strings) value(x any, v string) (any, bool) {
	if len(v) < minText || len(v) >= longText {
		return x, false
	}
	if s.values == nil {
		s.values = make([]any, len(s.texts))
	}
	cell := &s.values[maphash.String(seed, v)&uint64(len(s.values)-1)]
	if y, ok := (*cell).(string); ok && v == y {
		return *cell, !sameText(v, y)
	}
	*cell = x
	return x, false
}

func (s *Strings) inMem(nodes []op, at unsafe.Pointer) {
	for i := range nodes {
		o := &nodes[i]
		slot := unsafe.Add(at, o.off)
		switch o.kind {
		case opString:
			x := (*string)(slot)
			if y := s.text(*x); !sameText(*x, y) {
				*x = y
			}
		case opPointer:
			if to := *(*unsafe.Pointer)(slot); to != nil {
				s.inBlock(o.elem, to, 1)
			}
		case opSlice:
			s.inBlock(o.elem, dataOf(*sliceAt(slot)), len(*sliceAt(slot)))
		case opMap:
			s.inMap(o.elem, o.elem.mapAt(slot))
		case opAny, opInterface:
			if x, changed := s.inAny(o.load(slot)); changed {
				o.store(slot, x)
			}
		case opArray:
			for j := range o.size {
				s.inMem(o.elem.nodes, unsafe.Add(slot, j*o.elem.size))
			}
		}
	}
}

func (s *Strings) inBlock(p *plan, at unsafe.Pointer, n int) {
	if len(p.nodes) == 0 || !s.enter() {
		return
	}
	for i := range n {
		s.inMem(p.nodes, unsafe.Add(at, uintptr(i)*p.size))
	}
	s.depth--
}

// inAny replaces strings behind the pointer, map or slice that an interface holds. For a string it returns the one to
// use instead, and true. Other values in interfaces may be in read-only memory and are left as they are.
func (s *Strings) inAny(x any) (any, bool) {
	switch v := x.(type) {
	case nil, bool, int64, float64:
		return x, false
	case string:
		return s.value(x, v)
	case map[string]any:
		s.inMap(mapPlan, v)
		return x, false
	case []any:
		s.inBlock(anyPlan, unsafe.Pointer(unsafe.SliceData(v)), len(v))
		return x, false
	}
	switch p := planOf(reflect.TypeOf(x)); {
	case p.isPointer():
		if elem, to := p.pointee(x); to != nil {
			s.inBlock(elem, to, 1)
		}
	case p.isMap():
		s.inMap(p, p.mapIn(x))
	case p.kind == reflect.Slice && len(p.nodes) > 0:
		v := reflect.ValueOf(x)
		s.inBlock(p.nodes[0].elem, v.UnsafePointer(), v.Len())
	}
	return x, false
}

// inMap replaces the strings in a map from mapAt.
func (s *Strings) inMap(p *plan, in any) {
	if isNil(in) || !s.enter() {
		return
	}
	switch p.form {
	case mapStrings:
		m := in.(map[string]string)
		for k, v := range m {
			if key, val := s.text(k), s.text(v); !sameText(k, key) || !sameText(v, val) {
				m[key] = val
			}
		}
	case mapStringAny:
		m := in.(map[string]any)
		first := len(s.pairs)
		for k, v := range m {
			s.pairs = append(s.pairs, pair{k, v})
		}
		for i := range len(m) {
			e := s.pairs[first+i]
			val, changed := s.inAny(e.val)
			if key := s.text(e.key); changed || !sameText(e.key, key) {
				m[key] = val
			}
		}
		clear(s.pairs[first:])
		s.pairs = s.pairs[:first]
	default:
		r := s.collect(p, in)
		m := reflect.ValueOf(in)
		for i := range r.n {
			if p.key.kind == reflect.String {
				k := (*string)(unsafe.Add(r.keyAt, uintptr(i)*p.key.size))
				*k = s.text(*k)
			}
			s.inMem(p.val.nodes, unsafe.Add(r.valAt, uintptr(i)*p.val.size))
			m.SetMapIndex(r.keys.Index(i), r.vals.Index(i))
		}
		s.giveBack(r)
	}
	s.depth--
}
