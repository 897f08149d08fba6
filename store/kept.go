package store

import "github.com/mirador-k8s/mirador/store/internal/pack"

// PackedObject is an object in the packed form of its store, for code that keeps it outside of the process. Its method
// Append returns the encoded bytes, given the text of PackedContext.
type PackedObject = pack.Packed

// PackedBase is what a PackedObject is a difference to. It has to be kept with the object, and so do its parents.
type PackedBase = pack.Base

// PackedBases makes packed objects from what was kept.
type PackedBases = pack.Bases

// PackedFormat is the version of the packed form. What was kept in another version cannot be read.
const PackedFormat = pack.Format

// NewPackedBases returns an empty PackedBases.
func NewPackedBases() *PackedBases { return pack.NewBases() }

// Packed returns the packed form of the object. ok is false in the other layouts, and for an object that is kept live.
func (e *Entry[T]) Packed() (obj PackedObject, ok bool) {
	if !e.packed() {
		return obj, false
	}
	obj, _, err := e.packedForm()
	return obj, err == nil
}

// PackedContext returns the text that the packed object was packed with.
func PackedContext(key, uid, version string) string { return key + uid + version }
