package share

import (
	"reflect"
	"sync"
	"unsafe"
)

// An op describes one stretch of a value's memory.
type op struct {
	kind opKind
	off  uintptr
	size uintptr      // opRaw: bytes; opArray: elements
	elem *plan        // opPointer, opSlice, opArray: the element; opMap: the map itself
	typ  reflect.Type // opIface: the interface
}

type opKind uint8

const (
	opRaw     opKind = iota // compared bit for bit: no pointers, or pointers that count by identity
	opString                // a string
	opPointer               // a pointer to one value of elem
	opSlice                 // a slice of elem
	opMap                   // a map
	opEface                 // an interface without methods
	opIface                 // an interface with methods
	opArray                 // size values of elem in a row
)

// A plan says how to walk the memory of one type. Structs are flattened, so that a
// walk is a loop over ops and touches no reflection. Plans of recursive types point
// at each other. A type has one plan, so plans are compared by address.
type plan struct {
	typ    reflect.Type
	kind   reflect.Kind
	size   uintptr
	ops    []op // all of the memory but padding
	nodes  []op // those that lead out of it
	salt   uint64
	raw    bool         // all of it is one opRaw
	pinned bool         // must not be copied: counts by identity
	direct bool         // in an interface the value lies in the data word itself
	slice  reflect.Type // []typ

	// For maps.
	key, val *plan
	form     mapForm
}

type mapForm uint8

const (
	mapOther     mapForm = iota // any other key and element, by reflection
	mapStringAny                // map[string]any, under whatever name
	mapStrings                  // map[string]string, under whatever name
)

// text is the plan of what a string points at. All string types share it.
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
	// A plan may only be seen when all that it refers to is complete.
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
	zero := reflect.Zero(t)
	if t.Kind() != reflect.Interface {
		// The runtime decides which types lie in the data word itself. A zero value that does is a nil word;
		// one that does not is a pointer to something.
		boxed := zero.Interface()
		p.direct = (*eface)(unsafe.Pointer(&boxed)).data == nil
	}
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

// ops appends what a value of type t at offset off consists of.
func (c compiler) ops(ops []op, t reflect.Type, off uintptr) []op {
	if t.Size() == 0 {
		return ops
	}
	if identity(t) {
		size := t.Size()
		if t.Kind() == reflect.Slice {
			size = unsafe.Offsetof(slice{}.cap) // where it lies and how long it is
		}
		return appendRaw(ops, off, size)
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
			return append(ops, op{kind: opEface, off: off})
		}
		return append(ops, op{kind: opIface, off: off, typ: t})
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

// appendRaw adds plain memory, to the stretch before it if they touch.
func appendRaw(ops []op, off, size uintptr) []op {
	if n := len(ops); n > 0 && ops[n-1].kind == opRaw && ops[n-1].off+ops[n-1].size == off {
		ops[n-1].size += size
		return ops
	}
	return append(ops, op{kind: opRaw, off: off, size: size})
}
