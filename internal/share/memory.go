package share

import (
	"reflect"
	"sync"
	"unsafe"
)

// This package walks objects of types that it learns about at run time. A plan says at which offsets of a type
// strings, pointers, slices, maps and interfaces are, so a walk reads them with unsafe.Add and a conversion to the
// type that the plan names. CONTRIBUTING.md lists the conversions that are allowed.

// sliceAt returns the slice variable at an address, whatever its element type: all slice types have the same layout.
// The result is good for its address, length and capacity, which count elements of the real type.
func sliceAt(slot unsafe.Pointer) *[]byte { return (*[]byte)(slot) }

// blockSlice returns a slice for sliceAt of n elements at data. The elements are not of size 0.
func blockSlice(data unsafe.Pointer, n int) []byte { return unsafe.Slice((*byte)(data), n) }

// dataOf returns the address of the first element of a slice from sliceAt.
func dataOf(s []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }

// textData returns the address of the bytes of a string.
func textData(s string) unsafe.Pointer { return unsafe.Pointer(unsafe.StringData(s)) }

// textOf returns the string of n bytes at an address. The bytes must not change while the string is in use.
func textOf(data unsafe.Pointer, n int) string { return unsafe.String((*byte)(data), n) }

// sameText reports whether two equal strings are the same bytes in memory.
func sameText(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }

// cloner copies blocks of memory. Its fields are variables for the slices that reflection needs an address of.
type cloner struct {
	from, to []byte
}

// clone returns a new copy of n values of p at data, in memory of that size.
func (c *cloner) clone(p *plan, data unsafe.Pointer, n int) unsafe.Pointer {
	if n == 1 {
		fresh := reflect.New(p.typ)
		fresh.Elem().Set(reflect.NewAt(p.typ, data).Elem())
		return fresh.UnsafePointer()
	}
	c.from, c.to = blockSlice(data, n), nil
	to := reflect.NewAt(p.slice, unsafe.Pointer(&c.to)).Elem()
	to.Grow(n) // unlike MakeSlice, it does not allocate the slice variable
	to.SetLen(n)
	reflect.Copy(to, reflect.NewAt(p.slice, unsafe.Pointer(&c.from)).Elem())
	fresh := dataOf(c.to)
	c.from, c.to = nil, nil
	return fresh
}

// sizeClasses are the sizes that the allocator rounds up to. A copy in the same class saves nothing. The capacity
// after an append shows them.
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

// slack reports whether n values of p would fit into a smaller size class than room values do.
func slack(p *plan, n, room int) bool {
	return rounded(uintptr(n)*p.size) < rounded(uintptr(room)*p.size)
}
