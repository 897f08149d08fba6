package object

// Delta is one change on its way from a source to the store.
type Delta[T any] struct {
	// Type is any type but Resynced and Undecodable.
	Type ChangeType
	// Item is the object; for Deleted, its last known state. A Bookmark and the types that frame a list use only its
	// Version.
	Item Item[T]
	// Reached, where it is set, is the version up to which the source's history is complete once this delta and all
	// before it are applied. It is older than the item's own version where a queue has coalesced two deltas: the later
	// state is then in the place of the earlier one.
	Reached Version
	// NewEpoch, on ReplaceBegin and ReplaceEnd, says that the source's history was reset. The list is valid although
	// it may be older than the known state, and a known version may now stand for another state.
	NewEpoch bool
}

// Through returns the version up to which the source's history is complete once this delta and all before it are
// applied.
func (d *Delta[T]) Through() Version {
	if d.Reached != "" {
		return d.Reached
	}
	return d.Item.Version
}
