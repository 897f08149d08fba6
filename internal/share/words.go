package share

import (
	"hash/maphash"
	"unsafe"
)

// Maps from strings to elements of a few words (quantities, slices, pointers) are read as
// maps from strings to arrays of integers, which have the same layout. Reflection
// allocates for every look-up and took a third of the time of sharing a pod. Copies of
// elements lie in walker.words, where the collector does not see the pointers in them:
// the map is alive meanwhile, and nothing is written through them.

func wordsFit(size uintptr) bool {
	switch size {
	case 8, 16, 24, 32, 56:
		return true
	}
	return false
}

func (w *walker) hashWords(p *plan, slot unsafe.Pointer) uint64 {
	switch p.val.size {
	case 8:
		return hashArrays[[1]uint64](w, p, slot)
	case 16:
		return hashArrays[[2]uint64](w, p, slot)
	case 24:
		return hashArrays[[3]uint64](w, p, slot)
	case 32:
		return hashArrays[[4]uint64](w, p, slot)
	}
	return hashArrays[[7]uint64](w, p, slot)
}

func (w *walker) equalWords(p *plan, a, b unsafe.Pointer) bool {
	switch p.val.size {
	case 8:
		return equalArrays[[1]uint64](w, p, a, b)
	case 16:
		return equalArrays[[2]uint64](w, p, a, b)
	case 24:
		return equalArrays[[3]uint64](w, p, a, b)
	case 32:
		return equalArrays[[4]uint64](w, p, a, b)
	}
	return equalArrays[[7]uint64](w, p, a, b)
}

// put copies one element to w.words from place at on and returns its address.
func put[A any](w *walker, at int, v A) unsafe.Pointer {
	var zero [8]uint64
	w.words = append(w.words[:at], zero[:]...)
	to := unsafe.Pointer(&w.words[at])
	*(*A)(to) = v
	return to
}

func hashArrays[A any](w *walker, p *plan, slot unsafe.Pointer) (h uint64) {
	at := len(w.words)
	for k, v := range *(*map[string]A)(slot) {
		h += w.hashMem(p.val, put(w, at, v), maphash.String(seed, k))
	}
	w.words = w.words[:at]
	return h
}

func equalArrays[A any](w *walker, p *plan, a, b unsafe.Pointer) bool {
	m, n := *(*map[string]A)(a), *(*map[string]A)(b)
	if len(m) != len(n) {
		return false
	}
	at := len(w.words)
	equal := true
	for k, v := range m {
		other, ok := n[k]
		if !ok || !w.equalMem(p.val, put(w, at, v), put(w, at+8, other)) {
			equal = false
			break
		}
	}
	w.words = w.words[:at]
	return equal
}
