package share

import (
	"reflect"
	"unsafe"
)

// minText is the length from which strings are worth sharing. The runtime keeps shorter ones only once already.
const minText = 2

// Plans of the types that decoders put into interfaces.
var (
	anyPlan      = planOf(reflect.TypeFor[any]())
	stringPlan   = planOf(reflect.TypeFor[string]())
	mapPlan      = planOf(reflect.TypeFor[map[string]any]())
	anySlicePlan = planOf(reflect.TypeFor[[]any]())
	int64Plan    = planOf(reflect.TypeFor[int64]())
	float64Plan  = planOf(reflect.TypeFor[float64]())
	boolPlan     = planOf(reflect.TypeFor[bool]())
)

// emptyAnySlice stands for every []any in an interface that has no elements and is not nil.
var emptyAnySlice any = []any{}

// load returns what the interface variable at slot holds.
func (o *op) load(slot unsafe.Pointer) any {
	if o.kind == opAny {
		return *(*any)(slot)
	}
	return reflect.NewAt(o.typ, slot).Elem().Interface()
}

// store sets the interface variable at slot to a value that implements it.
func (o *op) store(slot unsafe.Pointer, x any) {
	if o.kind == opAny {
		*(*any)(slot) = x
		return
	}
	reflect.NewAt(o.typ, slot).Elem().Set(reflect.ValueOf(x))
}

// copyOf returns the address of a copy of a value of plan p that an interface holds: reflection does not say where an
// interface has its value. Only values of types that decoders do not produce are copied.
func copyOf(p *plan, x any) unsafe.Pointer {
	c := reflect.New(p.typ)
	c.Elem().Set(reflect.ValueOf(x))
	return c.UnsafePointer()
}

// valueAt returns the value of plan p at an address.
func valueAt(p *plan, at unsafe.Pointer) any { return reflect.NewAt(p.typ, at).Elem().Interface() }

// isPointer reports whether p is the plan of a pointer that plans follow.
func (p *plan) isPointer() bool { return p.kind == reflect.Pointer && len(p.nodes) > 0 }

// pointee returns the plan and the address of what a pointer that plans follow points to. The address is nil if there
// is nothing to read.
func (p *plan) pointee(x any) (elem *plan, to unsafe.Pointer) {
	elem = p.nodes[0].elem
	if elem.size == 0 {
		return elem, nil
	}
	return elem, reflect.ValueOf(x).UnsafePointer()
}

// pointerTo returns a pointer of plan p to an address.
func (p *plan) pointerTo(to unsafe.Pointer) any {
	v := reflect.NewAt(p.typ.Elem(), to)
	if v.Type() != p.typ {
		v = v.Convert(p.typ)
	}
	return v.Interface()
}

// isMap reports whether p is the plan of a map that plans look into.
func (p *plan) isMap() bool { return p.kind == reflect.Map && len(p.nodes) > 0 }

// mapAt returns the map in the variable at slot. Maps whose form has a type of its own have that type in the result,
// whatever their name.
func (p *plan) mapAt(slot unsafe.Pointer) any {
	switch p.form {
	case mapStrings:
		return *(*map[string]string)(slot)
	case mapStringAny:
		return *(*map[string]any)(slot)
	}
	return valueAt(p, slot)
}

// setMap sets the map variable at slot to a map as mapAt returns it.
func (p *plan) setMap(slot unsafe.Pointer, m any) {
	switch p.form {
	case mapStrings:
		*(*map[string]string)(slot) = m.(map[string]string)
	case mapStringAny:
		*(*map[string]any)(slot) = m.(map[string]any)
	default:
		reflect.NewAt(p.typ, slot).Elem().Set(reflect.ValueOf(m))
	}
}

// mapIn returns a map of plan p that an interface holds, as mapAt returns it.
func (p *plan) mapIn(x any) any {
	switch p.form {
	case mapStrings:
		return reflect.ValueOf(x).Convert(reflect.TypeFor[map[string]string]()).Interface()
	case mapStringAny:
		return reflect.ValueOf(x).Convert(reflect.TypeFor[map[string]any]()).Interface()
	}
	return x
}

// asMap is the inverse of mapIn.
func (p *plan) asMap(m any) any {
	if p.form == mapOther {
		return m
	}
	return reflect.ValueOf(m).Convert(p.typ).Interface()
}

// sameMap reports whether two maps are one map in memory.
func sameMap(a, b any) bool {
	return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
}

// isNil reports whether a pointer or a map in an interface is nil.
func isNil(x any) bool { return reflect.ValueOf(x).IsNil() }

// small reports whether a value in an interface is not worth sharing: it takes at most eight bytes.
func (p *plan) small() bool { return p.size == 0 || p.raw && p.size <= 8 }
