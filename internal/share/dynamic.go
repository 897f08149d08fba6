package share

import (
	"reflect"
	"unsafe"
)

// minText is the length from which strings are worth sharing. The runtime has
// shorter ones already.
const minText = 2

// What decoders put into interfaces, by the first word of the interface.
var (
	anyOp     = op{kind: opEface}
	anyPlan   = planOf(reflect.TypeFor[any]())
	textType  = typeWord("")
	textPlan  = planOf(reflect.TypeFor[string]())
	mapType   = typeWord(map[string]any(nil))
	mapPlan   = planOf(reflect.TypeFor[map[string]any]())
	sliceType = typeWord([]any(nil))
	slicePlan = planOf(reflect.TypeFor[[]any]())
	int64Type = typeWord(int64(0))
	int64Plan = planOf(reflect.TypeFor[int64]())
)

func typeWord(v any) unsafe.Pointer { return (*eface)(unsafe.Pointer(&v)).typ }

// dynamic returns the plan of what the interface at slot holds, which is not nil.
func dynamic(o *op, slot unsafe.Pointer) *plan {
	if o.kind == opIface {
		return planOf(reflect.NewAt(o.typ, slot).Elem().Elem().Type())
	}
	switch (*eface)(slot).typ {
	case textType:
		return textPlan
	case mapType:
		return mapPlan
	case sliceType:
		return slicePlan
	case int64Type:
		return int64Plan
	}
	return planOf(reflect.TypeOf(*(*any)(slot)))
}

// small reports whether a value in an interface is not worth a look: its box costs
// nothing or eight bytes.
func (p *plan) small(data unsafe.Pointer) bool {
	return p.size == 0 || p.raw && p.size <= 8 || p.kind == reflect.String && (*str)(data).len < minText
}
