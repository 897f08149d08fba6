// Package object has the types that all other packages share: a Key names an object, a Version orders its states, an
// Item is one object as a source delivered it, a Delta is one change on its way to the store, an Event is one change
// on its way to a handler, and a ChangeType says what a change is.
//
// It does not depend on Kubernetes. The objects themselves are of any type T: a *corev1.Pod, an unstructured map, raw
// bytes or a struct of two fields.
//
// What it promises:
//
//   - Keys sort as the API server sorts a list: byte by byte over
//     "namespace/name".
//   - Versions compare as Kubernetes defines it since 1.35: as decimal numbers
//     of any length. A version that is not such a number has no order, and
//     Compare says so.
//   - The zero Item, Delta and Event are valid and have no effect.
package object
