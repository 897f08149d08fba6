package store

import (
	"reflect"
	"sync/atomic"
	"unsafe"
)

// thin makes one pointer of an object, which can be loaded and stored in one step, and the object of that
// again. It can where T is a pointer; and where T is any, for the objects of one type, which nearly always are all of
// a store. It belongs to a table.
type thin[T any] struct {
	form form
	of   unsafe.Pointer // of the boxed: their type, once there is one
}

type form uint8

const (
	thick form = iota // T is none of these
	bare              // a pointer
	boxed             // an any
)

// box is how an any lies in memory: a type and, whatever that is, a pointer.
type box struct{ of, data unsafe.Pointer }

func newThin[T any]() thin[T] {
	switch t := reflect.TypeFor[T](); {
	case t.Kind() == reflect.Pointer:
		return thin[T]{form: bare}
	case t.Kind() == reflect.Interface && t.NumMethod() == 0:
		return thin[T]{form: boxed}
	}
	return thin[T]{}
}

// learn is for the writer: the first object says what the others are expected to be.
func (t *thin[T]) learn(rec *record[T]) {
	if t.form == boxed && atomic.LoadPointer(&t.of) == nil {
		atomic.StorePointer(&t.of, (*box)(unsafe.Pointer(&rec.obj)).of)
	}
}

// pointer gives the pointer of a record's object, or nil if the object does not lie in the record or is no such
// pointer.
func (t *thin[T]) pointer(rec *record[T]) unsafe.Pointer {
	if rec.extra != nil {
		return nil
	}
	switch t.form {
	case bare:
		return *(*unsafe.Pointer)(unsafe.Pointer(&rec.obj))
	case boxed:
		if b := (*box)(unsafe.Pointer(&rec.obj)); b.of == atomic.LoadPointer(&t.of) {
			return b.data
		}
	}
	return nil
}

// object gives the object of a pointer.
func (t *thin[T]) object(p unsafe.Pointer) (obj T) {
	if t.form == bare {
		return *(*T)(unsafe.Pointer(&p))
	}
	b := box{atomic.LoadPointer(&t.of), p}
	return *(*T)(unsafe.Pointer(&b))
}
