package queue

import "github.com/mirador-k8s/mirador/object"

// Delta is one thing that happened to an object: Added, Updated, Deleted,
// Replaced or Resynced.
type Delta[T any] struct {
	Type object.ChangeType
	// Object is the state after the change; for Deleted, the last one known.
	Object T
}

// Deltas is what happened to one object, oldest first.
type Deltas[T any] []Delta[T]

// Oldest gives the first delta; ok is false where there is none.
func (d Deltas[T]) Oldest() (delta Delta[T], ok bool) {
	if len(d) == 0 {
		return delta, false
	}
	return d[0], true
}

// Newest gives the last delta; ok is false where there is none.
func (d Deltas[T]) Newest() (delta Delta[T], ok bool) {
	if len(d) == 0 {
		return delta, false
	}
	return d[len(d)-1], true
}
