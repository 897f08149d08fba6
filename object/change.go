package object

import "fmt"

// ChangeType says what a change is. Sources, queues and events all use it; each uses the types that make sense there.
type ChangeType uint8

const (
	// Added is an object that is new.
	Added ChangeType = iota + 1
	// Updated is an object whose state has changed.
	Updated
	// Deleted is an object that does not exist any more. It comes with the last known state.
	Deleted
	// Replaced is an object from a list: new, changed or the same as before.
	Replaced
	// Resynced is an object that is delivered again without any change.
	Resynced
	// Undecodable is an object that could not be decoded.
	Undecodable
	// Bookmark has no object. It says that all changes up to its version have been delivered.
	Bookmark
	// ReplaceBegin opens a list; the Replaced changes that follow are its items.
	ReplaceBegin
	// ReplaceEnd closes a list: objects that were not in it do not exist any more. Its version is the list's.
	ReplaceEnd
	// ReplaceAbort discards the open list, as if it had never begun.
	ReplaceAbort
)

var changeNames = [...]string{
	Added: "Added", Updated: "Updated", Deleted: "Deleted", Replaced: "Replaced", Resynced: "Resynced",
	Undecodable: "Undecodable", Bookmark: "Bookmark",
	ReplaceBegin: "ReplaceBegin", ReplaceEnd: "ReplaceEnd", ReplaceAbort: "ReplaceAbort",
}

// String returns the type's name.
func (t ChangeType) String() string {
	if int(t) < len(changeNames) && changeNames[t] != "" {
		return changeNames[t]
	}
	return fmt.Sprintf("ChangeType(%d)", uint8(t))
}
