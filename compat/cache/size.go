package cache

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// sizeOf estimates the encoded length of an object, for bounds in bytes. Generated types compute it themselves. For
// other types it is the length of all text, and a few bytes for each value.
//
// It takes about as long as encoding the object, so it is called only if there is such a bound.
func sizeOf(obj any) int {
	switch o := obj.(type) {
	case nil:
		return 0
	case *unstructured.Unstructured:
		if o == nil {
			return 0
		}
		return sizeOfJSON(o.Object)
	case interface{ Size() int }:
		if isNil(obj) {
			return 0
		}
		return o.Size()
	}
	left := maxSized
	return sizeOfValue(reflect.ValueOf(obj), &left)
}

const (
	// valueBytes is the assumed size of a value without its text: quotes, a separator, a number.
	valueBytes = 4
	// maxSized is the number of values after which the walk ends, because an object may contain itself.
	maxSized = 1 << 17
)

// sizeOfJSON is sizeOf for decoded JSON.
func sizeOfJSON(v any) int {
	size := valueBytes
	switch v := v.(type) {
	case string:
		size += len(v)
	case map[string]any:
		for name, value := range v {
			size += len(name) + sizeOfJSON(value)
		}
	case []any:
		for _, value := range v {
			size += sizeOfJSON(value)
		}
	}
	return size
}

// sizeOfValue is sizeOf for any value. Zero fields of a struct do not count, because most encodings omit them.
func sizeOfValue(v reflect.Value, left *int) int {
	if *left--; *left < 0 {
		return 0
	}
	size := valueBytes
	switch v.Kind() {
	case reflect.String:
		size += v.Len()
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return 0
		}
		return sizeOfValue(v.Elem(), left)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); !f.IsZero() {
				size += sizeOfValue(f, left)
			}
		}
	case reflect.Slice, reflect.Array:
		if k := v.Type().Elem().Kind(); k == reflect.Uint8 {
			return size + v.Len()
		}
		for i := range v.Len() {
			size += sizeOfValue(v.Index(i), left)
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			size += sizeOfValue(entries.Key(), left) + sizeOfValue(entries.Value(), left)
		}
	}
	return size
}
