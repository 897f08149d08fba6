package object

import "fmt"

// DeltaType says what a Delta does.
type DeltaType uint8

// The first five are the deltas of the DeltaFIFO. The others frame a whole
// list and carry the marks of a stream through the informers' queue.
const (
	Added DeltaType = iota + 1
	Updated
	Deleted
	// Replaced is an object seen in a list: new, changed or the same.
	Replaced
	// Sync is an object given again without any change.
	Sync
	// ReplaceBegin opens a list; the Replaced deltas that follow are its items.
	ReplaceBegin
	// ReplaceEnd closes a list: what was not in it is gone. Its Version is the list's.
	ReplaceEnd
	// ReplaceAbort drops the list that was open: nothing of it was seen.
	ReplaceAbort
	// Bookmark says that the source has nothing older than Version left to tell.
	Bookmark
)

var deltaNames = [...]string{
	Added: "Added", Updated: "Updated", Deleted: "Deleted", Replaced: "Replaced", Sync: "Sync",
	ReplaceBegin: "ReplaceBegin", ReplaceEnd: "ReplaceEnd", ReplaceAbort: "ReplaceAbort", Bookmark: "Bookmark",
}

// String gives the type's name.
func (t DeltaType) String() string {
	if int(t) < len(deltaNames) && deltaNames[t] != "" {
		return deltaNames[t]
	}
	return fmt.Sprintf("DeltaType(%d)", uint8(t))
}

// Delta is one step of a source on its way to the store.
type Delta[T any] struct {
	Type DeltaType
	// Item is the object; for Deleted, its last known state. The marks of a list
	// and bookmarks use its Version alone.
	Item Item[T]
	// Reached, where it is set, says how far the source's history is complete once
	// this delta and all before it are applied. It is older than the item's own
	// version where a queue let a later state take an earlier one's place.
	Reached Version
	// NewEpoch, on the marks of a list, says that the source's history was set back: the
	// list counts although it may be older than what was known, and a version that was
	// known may stand for another state now.
	NewEpoch bool
}

// Through is how far the source's history is complete once this delta and all
// before it are applied.
func (d *Delta[T]) Through() Version {
	if d.Reached != "" {
		return d.Reached
	}
	return d.Item.Version
}
