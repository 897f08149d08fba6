package object

// Event is one change of the store, as it is delivered to a handler.
type Event[T any] struct {
	// Type is Added, Updated, Deleted or Resynced.
	Type ChangeType
	Key  Key
	// Version is the store's version at this change.
	Version Version
	// Old is the state that the handler saw last; the zero T for Added.
	Old T
	// New is the current state; the zero T for Deleted.
	New T
	// OldUID and NewUID identify the objects behind Old and New, where known.
	OldUID, NewUID string
	// Initial marks an Added of an object that existed when the handler subscribed.
	Initial bool
	// Missed marks a Deleted that was inferred from a later list because the deletion itself was not received. Old
	// is then the last known state, which may not be the object's last state.
	Missed bool
	// Unchanged marks an Updated without another version: a list contained the object as it was.
	Unchanged bool
	// Epoch counts how often the source's history had been reset when New, or the deletion of Old, was read. The
	// states of one object are ordered by Epoch and then by their own version.
	//
	// A state that is delivered again, by a resync or to a handler that subscribes late, has the epoch in which it was
	// read. That is older than the store's epoch if the object could not be decoded or transformed since then: the store
	// keeps the last state that could. So the epochs of different objects have no order.
	Epoch uint64
}
