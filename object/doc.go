// Package object is the vocabulary that every other package speaks: a Key
// names an object, a Version orders its states, an Item is one object as a
// source delivered it, a Delta is one step of a source, and an Event is what a
// handler is told.
//
// It knows nothing of Kubernetes. The objects themselves are of any type T: a
// *corev1.Pod, an unstructured map, raw bytes or a struct of two fields.
//
// What it promises:
//
//   - Keys sort as the API server sorts a list: byte by byte over
//     "namespace/name".
//   - Versions compare as Kubernetes defines it since 1.35: as decimal numbers
//     of any length. A version that is no such number compares with nothing,
//     and Compare says so instead of guessing.
//   - The zero Item, Delta and Event are valid and mean nothing.
package object
