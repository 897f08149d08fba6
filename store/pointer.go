package store

import (
	"reflect"
	"sync/atomic"
	"unsafe"
)

// pointers turns objects into pointers, which can be loaded and stored atomically, and back. It works where T is a
// pointer type, and where T is an interface type for the pointers of one type: that of the first one stored, which is
// nearly always the type of all objects in a store. It belongs to a table.
type pointers[T any] struct {
	kind reflect.Kind                 // of T
	held atomic.Pointer[reflect.Type] // the pointer type that T holds, if T is an interface type
}

func newPointers[T any]() pointers[T] { return pointers[T]{kind: reflect.TypeFor[T]().Kind()} }

// adopt takes over the type from the pointers of an older table.
func (p *pointers[T]) adopt(old *pointers[T]) { p.held.Store(old.held.Load()) }

// learn notes the type of the first object, if T is an interface type. Only the writer calls it.
func (p *pointers[T]) learn(rec *record[T]) {
	if p.kind != reflect.Interface || rec.extra != nil || p.held.Load() != nil {
		return
	}
	// A defined pointer type is no type that reflect.NewAt returns.
	if t := reflect.TypeOf(rec.obj); t != nil && t.Kind() == reflect.Pointer && t.Name() == "" {
		p.held.Store(&t)
	}
}

// of returns the pointer of a record's object. It returns nil if there is none or the record does not hold the object
// itself.
func (p *pointers[T]) of(rec *record[T]) unsafe.Pointer {
	if rec.extra != nil {
		return nil
	}
	switch p.kind {
	case reflect.Pointer:
		return *(*unsafe.Pointer)(unsafe.Pointer(&rec.obj))
	case reflect.Interface:
		if held := p.held.Load(); held != nil && reflect.TypeOf(rec.obj) == *held {
			return reflect.ValueOf(rec.obj).UnsafePointer()
		}
	}
	return nil
}

// object returns the object of a pointer that of returned.
func (p *pointers[T]) object(at unsafe.Pointer) T {
	if p.kind == reflect.Pointer {
		return *(*T)(unsafe.Pointer(&at))
	}
	return reflect.NewAt((*p.held.Load()).Elem(), at).Interface().(T)
}
