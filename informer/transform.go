package informer

import (
	"errors"

	"github.com/mirador-k8s/mirador/object"
)

// nothing is the type of a delta that says nothing new.
const nothing object.ChangeType = 0

// errUnread stands in an item whose last state was refused by the transform, or could not be decoded.
var errUnread = errors.New("the last state cannot be read")

// decodeListed is decode for an object of a list. The write lock is released while the transform runs: it may
// take its time, and may ask the informer for something that waits for a write, such as an index. What is written
// meanwhile does not matter here: the list has the last word, whatever the store holds of the object.
//
// Each object is transformed when its turn to be staged comes, and not all of them before: so no more objects are
// held than those that the queue has handed over.
func (i *Informer[T]) decodeListed(it *object.Item[T]) bool {
	if i.opts.Transform == nil {
		return i.decode(it)
	}
	i.endWrite()
	defer i.beginWrite()
	return i.decode(it)
}

// stretch gives the first deltas that are all changes outside of a list, or all of a list. What is
// news among changes can be said only when the list before them is in the store.
func (i *Informer[T]) stretch(deltas []object.Delta[T]) (part []object.Delta[T], changes bool) {
	inList := func(n int) bool { return deltas[n].Type == object.ReplaceBegin }
	if i.batch.replacing || inList(0) {
		for n := range deltas {
			if t := deltas[n].Type; t == object.ReplaceEnd || t == object.ReplaceAbort {
				return deltas[:n+1], false
			}
		}
		return deltas, false
	}
	for n := range deltas {
		if inList(n) {
			return deltas[:n], true
		}
	}
	return deltas, true
}

// knownState is what the store will have of an object when the changes before are in it.
type knownState struct {
	exists  bool
	version object.Version
	uid     string
}

// transformAll decodes and transforms changes before their batch is opened, and without a lock: a transform
// may take its time, and nobody waits for it but what comes after it. A change that says nothing new is not
// transformed (P13) and becomes nothing; one that cannot be stored becomes a bookmark, which takes
// the store to its version.
func (i *Informer[T]) transformAll(changes []object.Delta[T]) {
	var later map[object.Key]knownState // what the changes before leave behind
	if len(changes) > 1 {
		later = make(map[object.Key]knownState, len(changes))
	}
	for n := range changes {
		d := &changes[n]
		if d.Type == object.Bookmark {
			continue
		}
		have, seen := later[d.Item.Key]
		if !seen {
			if e, ok := i.reader.Entry(d.Item.Key); ok {
				have = knownState{true, e.Version, e.UID}
			}
		}
		if !i.opts.Verbatim && have.exists && (seen || !i.batch.isPast(d.Item.Key)) && isOld(d, have.version, have.uid) {
			i.stale.Add(1)
			d.Type = nothing
			continue
		}
		if now, ok := i.transformOne(d, have); ok && later != nil {
			later[d.Item.Key] = now
		}
	}
}

// transformOne makes one change ready for the store, and says what is there afterwards; ok is false
// where that is what was there before.
func (i *Informer[T]) transformOne(d *object.Delta[T], have knownState) (now knownState, ok bool) {
	if d.Type == object.Deleted {
		// Of an unknown object, or of another one of its name, nobody is told the last state.
		told := i.opts.Verbatim || have.exists && object.SameObject(have.uid, d.Item.UID)
		if !told || !i.decode(&d.Item) {
			d.Item.Decode = func([]byte) (none T, err error) { return none, errUnread }
		}
		return knownState{}, true
	}
	if !i.decode(&d.Item) {
		d.Type = object.Bookmark
		return have, false
	}
	return knownState{true, d.Item.Version, d.Item.UID}, true
}
