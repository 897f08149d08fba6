package object

import "fmt"

// EventType says what happened to an object, as a handler sees it.
type EventType uint8

// What can happen to an object. Resynced is an object given again, unchanged,
// because the handler asked for that from time to time.
const (
	Add EventType = iota + 1
	Update
	Delete
	Resynced
)

var eventNames = [...]string{Add: "Add", Update: "Update", Delete: "Delete", Resynced: "Resynced"}

// String gives the type's name.
func (t EventType) String() string {
	if int(t) < len(eventNames) && eventNames[t] != "" {
		return eventNames[t]
	}
	return fmt.Sprintf("EventType(%d)", uint8(t))
}

// Event is one change of the store, told to a handler.
type Event[T any] struct {
	Type EventType
	Key  Key
	// Version is the store's version at this change.
	Version Version
	// Old is the state that the handler saw last; the zero T for Add.
	Old T
	// New is the state now; the zero T for Delete.
	New T
	// OldUID and NewUID identify the objects behind Old and New, where known.
	OldUID, NewUID string
	// Initial marks an Add that is part of what was there when the handler joined.
	Initial bool
	// Missed marks a Delete that was not seen but inferred from a later list: Old
	// is the last state known, perhaps not the last there was.
	Missed bool
	// Unchanged marks an Update that brought no other version: the object was listed
	// again as it was.
	Unchanged bool
	// Epoch counts how often the source's history had been set back when New, or the
	// end of Old, was read. The states of one object are in order by Epoch and then by
	// their own version.
	//
	// A state that is given again, by a resync or to a handler that joins late, has the
	// epoch it was read in. That is an earlier one than the store's where the object
	// could not be decoded or transformed since: the store keeps the last state that
	// could be. So the epochs of different objects have no order.
	Epoch uint64
}
