package share

import (
	"hash/maphash"
	"reflect"
	"unsafe"
)

// Strings makes equal strings of decoded objects one string. It is a cache of fixed
// size that remembers the strings it saw last, so unlike a Table it needs no word
// when an object is gone. One goroutine uses it at a time.
type Strings struct {
	walker
	texts []string
	boxes []any // strings in interfaces, made when the first one comes
	root  any   // the object in hand: as a parameter it would be allocated
}

// NewStrings returns a cache that remembers up to the given number of strings, rounded up to a power of two.
func NewStrings(slots int) *Strings {
	n := 1
	for n < slots {
		n *= 2
	}
	return &Strings{texts: make([]string, n)}
}

// longText is the length from which strings are left alone: hardly any two of them are equal.
const longText = 256

// Share exchanges the strings of obj, in place. Nobody else may hold obj or anything
// below it.
func (s *Strings) Share(obj any) {
	if obj == nil {
		return
	}
	s.root = obj
	s.inInterface(&anyOp, unsafe.Pointer(&s.root))
	s.root = nil
	s.walker.reset()
}

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

// box does for a string in an interface what text does for others.
func (s *Strings) box(v any) any {
	x, ok := v.(string)
	if !ok || len(x) < minText || len(x) >= longText {
		return v
	}
	if s.boxes == nil {
		s.boxes = make([]any, len(s.texts))
	}
	cell := &s.boxes[maphash.String(seed, x)&uint64(len(s.boxes)-1)]
	if y, ok := (*cell).(string); !ok || x != y {
		*cell = v
	}
	return *cell
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
			s.inBlock(o.elem, (*slice)(slot).data, (*slice)(slot).len)
		case opMap:
			if *(*unsafe.Pointer)(slot) != nil {
				s.inMap(o.elem, slot)
			}
		case opEface, opIface:
			s.inInterface(o, slot)
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

// inInterface looks behind pointers, maps and slices. Other boxes may lie in read-only memory.
func (s *Strings) inInterface(o *op, slot unsafe.Pointer) {
	e := (*eface)(slot)
	if e.typ == nil {
		return
	}
	switch p := dynamic(o, slot); {
	case p.direct:
		s.inMem(p.nodes, unsafe.Pointer(&e.data))
	case p.kind == reflect.Slice && len(p.nodes) == 1:
		s.inBlock(p.nodes[0].elem, (*slice)(e.data).data, (*slice)(e.data).len)
	case p == textPlan && o.kind == opEface:
		if x := s.box(*(*any)(slot)); (*eface)(unsafe.Pointer(&x)).data != e.data {
			*(*any)(slot) = x
		}
	}
}

func (s *Strings) inMap(p *plan, slot unsafe.Pointer) {
	if !s.enter() {
		return
	}
	switch {
	case p.form == mapStrings:
		m := *(*map[string]string)(slot)
		for k, v := range m {
			if key, val := s.text(k), s.text(v); !sameText(k, key) || !sameText(v, val) {
				m[key] = val
			}
		}
	case p.form == mapStringAny:
		m := *(*map[string]any)(slot)
		first := len(s.pairs)
		for k, v := range m {
			s.pairs = append(s.pairs, pair{k, v})
		}
		for i := range len(m) {
			s.inInterface(&anyOp, unsafe.Pointer(&s.pairs[first+i].val))
			// Nested maps may have moved the pairs; only a string changes in its pair itself.
			m[s.text(s.pairs[first+i].key)] = s.pairs[first+i].val
		}
		clear(s.pairs[first:])
		s.pairs = s.pairs[:first]
	default:
		r := s.collect(p, slot)
		m := reflect.NewAt(p.typ, slot).Elem()
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
