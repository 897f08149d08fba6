package share

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unsafe"
)

// Diff returns the path of the first difference between a and b, such as "Spec.Containers[1].Image", or "" if they are
// Equal. If the objects themselves differ, for example in their types, the path is ".".
func Diff(a, b any) string {
	if Equal(a, b) {
		return ""
	}
	path := strings.TrimPrefix(diff(reflect.ValueOf(&a).Elem(), reflect.ValueOf(&b).Elem(), 0), ".")
	if path == "" {
		return "."
	}
	return path
}

// diff returns the path to the first difference between two addressable values of one type, which differ.
func diff(a, b reflect.Value, depth int) string {
	t := a.Type()
	if identity(t) || depth > maxDepth {
		return ""
	}
	switch t.Kind() {
	case reflect.Pointer:
		if !a.IsNil() && !b.IsNil() {
			return diff(a.Elem(), b.Elem(), depth+1)
		}
	case reflect.Interface:
		if !a.IsNil() && !b.IsNil() && a.Elem().Type() == b.Elem().Type() && !pinned(a.Elem().Type()) {
			return diff(addressable(a.Elem()), addressable(b.Elem()), depth+1)
		}
	case reflect.Struct:
		for i := range t.NumField() {
			if x, y := field(a, i), field(b, i); !equalValues(x, y) {
				return "." + t.Field(i).Name + diff(x, y, depth+1)
			}
		}
	case reflect.Slice, reflect.Array:
		if t.Kind() == reflect.Slice && a.IsNil() != b.IsNil() {
			return ""
		}
		for i := range min(a.Len(), b.Len()) {
			if !equalValues(a.Index(i), b.Index(i)) {
				return fmt.Sprintf("[%d]", i) + diff(a.Index(i), b.Index(i), depth+1)
			}
		}
		if a.Len() != b.Len() {
			return fmt.Sprintf("[%d]", min(a.Len(), b.Len()))
		}
	case reflect.Map:
		if a.IsNil() == b.IsNil() {
			return diffMaps(a, b, depth)
		}
	}
	return ""
}

// diffMaps returns the path of the first key that differs, in the order of the printed keys.
func diffMaps(a, b reflect.Value, depth int) string {
	keys := a.MapKeys()
	for _, k := range b.MapKeys() {
		if !a.MapIndex(k).IsValid() {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(x, y reflect.Value) int { return strings.Compare(fmt.Sprint(x), fmt.Sprint(y)) })
	for _, k := range keys {
		path := fmt.Sprintf("[%v]", k)
		if k.Kind() == reflect.String {
			path = fmt.Sprintf("[%q]", k.String())
		}
		x, y := a.MapIndex(k), b.MapIndex(k)
		if !x.IsValid() || !y.IsValid() {
			return path
		}
		x, y = addressable(x), addressable(y)
		if !equalValues(x, y) {
			return path + diff(x, y, depth+1)
		}
	}
	return ""
}

// field returns field i, readable whether it is exported or not.
func field(v reflect.Value, i int) reflect.Value {
	f := v.Field(i)
	return reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem()
}

// addressable returns an addressable copy of v.
func addressable(v reflect.Value) reflect.Value {
	at := reflect.New(v.Type()).Elem()
	at.Set(v)
	return at
}

// equalValues is Equal for two addressable values of one type.
func equalValues(a, b reflect.Value) bool {
	return Equal(a.Addr().Interface(), b.Addr().Interface())
}
