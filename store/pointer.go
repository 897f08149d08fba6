package store

import (
	"reflect"
	"unsafe"
)

// objectPointer returns the pointer of a record's object, which can be loaded and stored atomically. It returns nil if
// T is not a pointer type or the record does not hold the object itself.
func (t *table[T]) objectPointer(rec *record[T]) unsafe.Pointer {
	if !t.pointers || rec.extra != nil {
		return nil
	}
	return *(*unsafe.Pointer)(unsafe.Pointer(&rec.obj))
}

// objectAt returns the object of a pointer from objectPointer.
func objectAt[T any](p unsafe.Pointer) T { return *(*T)(unsafe.Pointer(&p)) }

func isPointerType[T any]() bool { return reflect.TypeFor[T]().Kind() == reflect.Pointer }
