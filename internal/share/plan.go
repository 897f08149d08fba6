package share

import (
	"reflect"
	"sync"
)

// An op describes one stretch of a value's memory.
type op struct {
	kind opKind
	off  uintptr
	size uintptr      // opRaw: bytes; opArray: elements
	elem *plan        // opPointer, opSlice, opArray: the element; opMap: the map itself
	typ  reflect.Type // opInterface: the interface type
}

type opKind uint8

const (
	opRaw       opKind = iota // compared bit for bit: no pointers, or pointers that are compared by address
	opString                  // a string
	opPointer                 // a pointer to one value of elem
	opSlice                   // a slice of elem
	opMap                     // a map
	opAny                     // an interface without methods
	opInterface               // an interface with methods
	opArray                   // size consecutive values of elem
)

// A plan describes the memory of one type. Structs are flattened, so a walk is a loop over ops and rarely uses
// reflection. Plans of recursive types refer to each other. A type has one plan, so plans are compared by address.
type plan struct {
	typ    reflect.Type
	kind   reflect.Kind
	size   uintptr
	ops    []op // all memory except padding
	nodes  []op // the ops that are not opRaw
	salt   uint64
	raw    bool         // all of it is one opRaw
	pinned bool         // must not be copied: compared by address
	slice  reflect.Type // []typ

	// For maps.
	key, val *plan
	form     mapForm
}

type mapForm uint8

const (
	mapOther     mapForm = iota // any other key and element, by reflection
	mapStringAny                // map[string]any and named types of it
	mapStrings                  // map[string]string and named types of it
)

// text is the plan of the bytes of a string. All string types share it.
var text = &plan{typ: reflect.TypeFor[byte](), kind: reflect.Uint8, size: 1, raw: true, salt: 0x7465787400000001}

var (
	plans     sync.Map // reflect.Type -> *plan, complete ones only
	compiling sync.Mutex
	planCount uint64
)

func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	compiling.Lock()
	defer compiling.Unlock()
	c := compiler{}
	p := c.plan(t)
	// A plan is published only when all plans that it refers to are complete.
	for typ, built := range c {
		plans.Store(typ, built)
	}
	return p
}

// compiler holds the plans of one compilation until all of them are complete.
type compiler map[reflect.Type]*plan

func (c compiler) plan(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	if p, ok := c[t]; ok {
		return p
	}
	planCount++
	p := &plan{typ: t, kind: t.Kind(), size: t.Size(), slice: reflect.SliceOf(t), salt: mix(planCount), pinned: pinned(t)}
	c[t] = p
	if t.Kind() == reflect.Map && !identity(t) {
		p.key, p.val = c.plan(t.Key()), c.plan(t.Elem())
		switch {
		case t.ConvertibleTo(reflect.TypeFor[map[string]string]()):
			p.form = mapStrings
		case t.ConvertibleTo(reflect.TypeFor[map[string]any]()):
			p.form = mapStringAny
		}
	}
	p.ops = c.ops(nil, t, 0)
	for _, o := range p.ops {
		if o.kind != opRaw {
			p.nodes = append(p.nodes, o)
		}
	}
	p.raw = p.size > 0 && len(p.ops) == 1 && p.ops[0].kind == opRaw && p.ops[0].size == p.size
	return p
}

// ops appends the ops of a value of type t at offset off.
func (c compiler) ops(ops []op, t reflect.Type, off uintptr) []op {
	if t.Size() == 0 {
		return ops
	}
	if identity(t) {
		return appendRaw(ops, off, t.Size())
	}
	switch t.Kind() {
	case reflect.String:
		return append(ops, op{kind: opString, off: off})
	case reflect.Pointer:
		return append(ops, op{kind: opPointer, off: off, elem: c.plan(t.Elem())})
	case reflect.Slice:
		return append(ops, op{kind: opSlice, off: off, elem: c.plan(t.Elem())})
	case reflect.Map:
		return append(ops, op{kind: opMap, off: off, elem: c.plan(t)})
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return append(ops, op{kind: opAny, off: off})
		}
		return append(ops, op{kind: opInterface, off: off, typ: t})
	case reflect.Array:
		if t.Len() > 4 && !identity(t.Elem()) && !scalar(t.Elem().Kind()) {
			return append(ops, op{kind: opArray, off: off, size: uintptr(t.Len()), elem: c.plan(t.Elem())})
		}
		if scalar(t.Elem().Kind()) {
			return appendRaw(ops, off, t.Size())
		}
		for i := range t.Len() {
			ops = c.ops(ops, t.Elem(), off+uintptr(i)*t.Elem().Size())
		}
		return ops
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			ops = c.ops(ops, f.Type, off+f.Offset)
		}
		return ops
	default:
		return appendRaw(ops, off, t.Size())
	}
}

// appendRaw appends an opRaw, or extends the last one if they are adjacent.
func appendRaw(ops []op, off, size uintptr) []op {
	if n := len(ops); n > 0 && ops[n-1].kind == opRaw && ops[n-1].off+ops[n-1].size == off {
		ops[n-1].size += size
		return ops
	}
	return append(ops, op{kind: opRaw, off: off, size: size})
}
