package query

import (
	"slices"

	"github.com/mirador-k8s/mirador/object"
)

// Visible is the set of objects of one resource in one cluster that a user may see. It can be applied to an index
// before any object is read. The zero value contains nothing. It must not be changed once it is in use.
type Visible struct {
	// All means all objects; the other fields are ignored.
	All bool
	// Namespaces are namespaces in which every object is visible, sorted.
	Namespaces []string
	// Keys are single objects, sorted.
	Keys []object.Key
	// Names are names that are visible in every namespace, sorted.
	Names []string
}

// Contains reports whether an object is visible, given its key.
func (v *Visible) Contains(key object.Key) bool {
	if v.All {
		return true
	}
	namespace, name := key.Split()
	if namespace != "" && contains(v.Namespaces, namespace) {
		return true
	}
	return contains(v.Keys, key) || contains(v.Names, name)
}

// contains reports whether a sorted slice has a value.
func contains[S ~string](sorted []S, value S) bool {
	_, found := slices.BinarySearch(sorted, value)
	return found
}

// Empty reports whether nothing is visible.
func (v *Visible) Empty() bool {
	return !v.All && len(v.Namespaces) == 0 && len(v.Keys) == 0 && len(v.Names) == 0
}

// Equal reports whether two sets are described in the same way.
func (v *Visible) Equal(w *Visible) bool {
	if v.All || w.All {
		return v.All == w.All
	}
	return slices.Equal(v.Namespaces, w.Namespaces) && slices.Equal(v.Keys, w.Keys) && slices.Equal(v.Names, w.Names)
}
