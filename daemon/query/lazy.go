package query

import (
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/mirador-k8s/mirador/internal/jsonscan"
)

// variables are the variables of an expression for one object.
type variables struct {
	doc     *Doc
	cluster string
	meter   meter
}

// maxRead is how many bytes of an object one evaluation may read, counting repeated reads. CEL charges one for a field,
// whatever its length.
const maxRead = 16 << 20

// meter counts the bytes that an evaluation has read. An expression may ignore the error of a refused read, so Matches
// checks the meter at the end.
type meter struct{ read int }

// take counts n bytes and reports whether they may be read.
func (m *meter) take(n int) bool {
	m.read += n
	return !m.over()
}

func (m *meter) over() bool { return m.read > maxRead }

// ResolveName returns the value of a variable.
func (v *variables) ResolveName(name string) (any, bool) {
	switch name {
	case "object":
		return &lazyMap{doc: v.doc, raw: v.doc.raw[jsonscan.Space(v.doc.raw, 0):], meter: &v.meter}, true
	case "metadata", "spec", "status":
		return v.member(name), true
	case "cluster":
		return types.String(v.cluster), true
	}
	return nil, false
}

// member returns a member of the object, or an empty map if there is none, so that !has(status.phase) is true for an
// object without status.
func (v *variables) member(name string) ref.Val {
	m, ok := v.doc.last(v.doc.outer, &step{name: name})
	if !ok {
		return &lazyMap{raw: emptyObject, meter: &v.meter}
	}
	return v.doc.memberVal(m, &v.meter)
}

var emptyObject = []byte("{}")

// Parent is nil: there are no other variables.
func (v *variables) Parent() cel.Activation { return nil }

// lazyMap is a JSON object in an expression. It searches fields in the bytes when the expression uses them; operations
// that need the whole object decode it first.
type lazyMap struct {
	raw   []byte
	doc   *Doc    // has the offsets of the members; may be nil
	of    *member // the member of doc that this map is; nil for the whole document
	meter *meter
	whole traits.Mapper
}

var _ traits.Mapper = (*lazyMap)(nil)

func (d *Doc) memberVal(m *member, count *meter) ref.Val {
	raw := d.cut(m.value)
	if raw[0] == '{' {
		return &lazyMap{raw: raw, doc: d, of: m, meter: count}
	}
	return lazyVal(raw, count)
}

// lazyVal converts a valid JSON value for an expression.
func lazyVal(v []byte, count *meter) ref.Val {
	if v[0] == '{' {
		return &lazyMap{raw: v, meter: count} // nothing has to be read yet
	}
	if !count.take(len(v)) {
		return types.WrapErr(errTooLarge)
	}
	val, _ := lazyAt(v, 0, count)
	return val
}

// lazyAt converts the value at i and returns where it ends. Objects are lazy; arrays are split into their elements.
func lazyAt(b []byte, i int, count *meter) (v ref.Val, end int) {
	switch b[i] {
	case '[':
		return listAt(b, i, count)
	case '{':
		end = jsonscan.Value(b, i)
		return &lazyMap{raw: b[i:end], meter: count}, end
	}
	plain, end, err := decodeAt(b, i)
	if err != nil {
		return types.WrapErr(err), end
	}
	switch p := plain.(type) {
	case string:
		return types.String(p), end
	case bool:
		return types.Bool(p), end
	case int64:
		return types.Int(p), end
	case float64:
		return types.Double(p), end
	}
	return types.NullValue, end
}

func listAt(b []byte, i int, count *meter) (ref.Val, int) {
	var elements []ref.Val
	for i = jsonscan.Space(b, i+1); b[i] != ']'; {
		v, end := lazyAt(b, i, count)
		elements = append(elements, v)
		i = jsonscan.Behind(b, end)
	}
	return types.NewRefValList(types.DefaultTypeAdapter, elements), i + 1
}

// Find returns a field.
func (m *lazyMap) Find(key ref.Val) (ref.Val, bool) {
	if types.IsUnknownOrError(key) {
		return key, false
	}
	if m.meter.over() {
		return types.WrapErr(errTooLarge), false
	}
	name, ok := key.(types.String)
	if !ok {
		return nil, false // JSON has only string keys
	}
	s := step{name: string(name), mayBeInvalid: strings.ContainsRune(string(name), utf8.RuneError)}
	if m.doc == nil {
		if !m.meter.take(len(m.raw)) {
			return types.WrapErr(errTooLarge), false
		}
		v, ok := within(m.raw, &s)
		if !ok {
			return nil, false
		}
		return lazyVal(v, m.meter), true
	}
	members := m.doc.outer
	if m.of != nil {
		members = m.doc.inner[m.of.first:m.of.last]
	}
	found, ok := m.doc.last(members, &s)
	switch {
	case !ok:
		return nil, false
	case m.of == nil:
		return m.doc.memberVal(found, m.meter), true
	}
	return lazyVal(m.doc.cut(found.value), m.meter), true
}

// Contains reports whether the object has a field.
func (m *lazyMap) Contains(key ref.Val) ref.Val {
	v, found := m.Find(key)
	if v != nil && types.IsUnknownOrError(v) && !found {
		return v
	}
	return types.Bool(found)
}

// Get returns a field or an error.
func (m *lazyMap) Get(key ref.Val) ref.Val {
	v, found := m.Find(key)
	if !found {
		return types.ValOrErr(v, "no such key: %v", key)
	}
	return v
}

var noFields = types.NewStringInterfaceMap(types.DefaultTypeAdapter, nil)

// fields returns a map of all fields, which are lazy.
func (m *lazyMap) fields() traits.Mapper {
	if !m.meter.take(len(m.raw)) {
		return noFields // the evaluation fails in any case
	}
	if m.whole == nil {
		fields := make(map[string]any)
		for i := 1; ; {
			field, next, ok := jsonscan.Next(m.raw, i)
			if !ok {
				break
			}
			fields[jsonscan.Unquote(field.Name, field.Escaped)] = lazyVal(m.raw[field.From:field.To], m.meter)
			i = next
		}
		m.whole = types.NewStringInterfaceMap(types.DefaultTypeAdapter, fields)
	}
	return m.whole
}

// decoded decodes the whole object at once. Decoding it level by level would read a deep object once for each level.
func (m *lazyMap) decoded() ref.Val {
	if !m.meter.take(len(m.raw)) {
		return types.WrapErr(errTooLarge)
	}
	v, err := decode(m.raw)
	if err != nil {
		return types.WrapErr(err)
	}
	return types.DefaultTypeAdapter.NativeToValue(v)
}

// Size returns the number of fields.
func (m *lazyMap) Size() ref.Val { return m.fields().Size() }

// Iterator iterates over the names of the fields.
func (m *lazyMap) Iterator() traits.Iterator { return m.fields().Iterator() }

// Equal compares with another value.
func (m *lazyMap) Equal(other ref.Val) ref.Val {
	if o, ok := other.(*lazyMap); ok {
		other = o.decoded()
	}
	if types.IsError(other) {
		return other
	}
	return m.decoded().Equal(other)
}

// ConvertToNative converts the object to a Go value.
func (m *lazyMap) ConvertToNative(t reflect.Type) (any, error) {
	return m.decoded().ConvertToNative(t)
}

// ConvertToType converts the object to another CEL type.
func (m *lazyMap) ConvertToType(t ref.Type) ref.Val { return m.fields().ConvertToType(t) }

// Type returns the type of maps.
func (m *lazyMap) Type() ref.Type { return types.MapType }

// Value returns the decoded object.
func (m *lazyMap) Value() any { return m.decoded().Value() }
