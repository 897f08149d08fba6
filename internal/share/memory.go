package share

import (
	"reflect"
	"sync"
	"unsafe"
)

// The words behind strings, slices and interfaces. Stores to fields of type
// unsafe.Pointer tell the collector about the pointer.
type (
	str struct {
		data unsafe.Pointer
		len  int
	}
	slice struct {
		data unsafe.Pointer
		len  int
		cap  int
	}
	eface struct {
		typ  unsafe.Pointer
		data unsafe.Pointer
	}
)

// emptySlice is what non-nil slices without elements point at.
var emptySlice = unsafe.Pointer(unsafe.SliceData([]byte{}))

func textOf(data unsafe.Pointer, n int) string { return unsafe.String((*byte)(data), n) }

// cloner copies blocks of memory. Its fields are room for the slice headers that
// reflection wants an address of.
type cloner struct {
	from, to slice
}

// clone returns a fresh copy of n values of p at data, in memory of just that size.
func (c *cloner) clone(p *plan, data unsafe.Pointer, n int) unsafe.Pointer {
	if n == 1 {
		fresh := reflect.New(p.typ)
		fresh.Elem().Set(reflect.NewAt(p.typ, data).Elem())
		return fresh.UnsafePointer()
	}
	c.from, c.to = slice{data, n, n}, slice{}
	to := reflect.NewAt(p.slice, unsafe.Pointer(&c.to)).Elem()
	to.Grow(n) // unlike MakeSlice, it allocates no header
	to.SetLen(n)
	reflect.Copy(to, reflect.NewAt(p.slice, unsafe.Pointer(&c.from)).Elem())
	fresh := c.to.data
	c.from, c.to = slice{}, slice{}
	return fresh
}

// The allocator rounds sizes up to classes; a copy that lands in the same class saves
// nothing. The classes are asked for once: append shows them.
var sizeClasses = sync.OnceValue(func() (classes []uintptr) {
	for n := 1; n <= 32<<10; n = int(classes[len(classes)-1]) + 1 {
		classes = append(classes, uintptr(cap(append([]byte(nil), make([]byte, n)...))))
	}
	return classes
})

func rounded(n uintptr) uintptr {
	classes := sizeClasses()
	if n > classes[len(classes)-1] {
		return (n + 8191) &^ 8191
	}
	lo, hi := 0, len(classes)-1
	for lo < hi {
		if mid := (lo + hi) / 2; classes[mid] < n {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return classes[lo]
}

// slack reports whether n values of p would lie in a smaller piece of memory than room values.
func slack(p *plan, n, room int) bool {
	return rounded(uintptr(n)*p.size) < rounded(uintptr(room)*p.size)
}
