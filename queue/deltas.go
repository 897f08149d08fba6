package queue

import "github.com/mirador-k8s/mirador/object"

// Delta is one change of an object: Added, Updated, Deleted, Replaced or Resynced.
type Delta[T any] struct {
	Type object.ChangeType
	// Object is the state after the change; for Deleted, the last known state.
	Object T
}

// Deltas are the changes of one object, oldest first.
type Deltas[T any] []Delta[T]

// Oldest returns the first delta; ok is false if there is none.
func (d Deltas[T]) Oldest() (delta Delta[T], ok bool) {
	if len(d) == 0 {
		return delta, false
	}
	return d[0], true
}

// Newest returns the last delta; ok is false if there is none.
func (d Deltas[T]) Newest() (delta Delta[T], ok bool) {
	if len(d) == 0 {
		return delta, false
	}
	return d[len(d)-1], true
}
