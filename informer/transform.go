package informer

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/mirador-k8s/mirador/object"
)

// nothing is the type of a delta that has no effect.
const nothing object.ChangeType = 0

// errUndecodable marks an item whose last state could not be decoded or transformed.
var errUndecodable = errors.New("the last state cannot be read")

// decode decodes and transforms the object and puts it into the item's Value. It reports failures.
func (i *Informer[T]) decode(it *object.Item[T]) bool {
	obj, err := it.Object()
	if err != nil {
		i.problem("decode", it.Key, err)
		return false
	}
	if i.opts.Transform != nil {
		if obj, err = i.transformed(obj); err != nil {
			i.problem("transform", it.Key, err)
			return false
		}
		it.Encoded, it.Owned = nil, false // the transform may have returned any object
	}
	it.Value, it.Decode = obj, nil
	return true
}

// transformed calls the transform and returns a panic as an error.
func (i *Informer[T]) transformed(in T) (out T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the transform panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return i.opts.Transform(in)
}

// decodeListed is decode for an object of a list. The write lock is released while the transform runs: a transform may
// be slow, and may call a method of the informer that needs the lock, such as AddIndexes. Writes that happen meanwhile
// do not matter, because the list replaces whatever the store holds of the object.
//
// Each object is transformed just before it is staged, so that no more objects are held than the queue has delivered.
func (i *Informer[T]) decodeListed(it *object.Item[T]) bool {
	if i.opts.Transform == nil {
		return i.decode(it)
	}
	i.endWrite()
	defer i.beginWrite()
	return i.decode(it)
}

// nextPart returns the first deltas that are all changes outside a list, or all part of one list. Whether a change is
// new is known only when the list before it is in the store.
func (i *Informer[T]) nextPart(deltas []object.Delta[T]) (part []object.Delta[T], changes bool) {
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

// knownState is the state of an object in the store after the preceding changes.
type knownState struct {
	exists  bool
	version object.Version
	uid     string
}

// transformAll decodes and transforms changes before their batch is opened, and without a lock: a transform may be
// slow, and only later changes wait for it. A change that is not new is not transformed (P13) and gets the type
// nothing. A change that cannot be stored becomes a bookmark, so that the store still reaches its version.
func (i *Informer[T]) transformAll(changes []object.Delta[T]) {
	var later map[object.Key]knownState // states after the preceding changes
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
		if !i.opts.Verbatim && have.exists && (seen || !i.batch.isOlderState(d.Item.Key)) &&
			isOld(d, have.version, have.uid) {
			i.stale.Add(1)
			d.Type = nothing
			continue
		}
		if now, ok := i.transformOne(d, have); ok && later != nil {
			later[d.Item.Key] = now
		}
	}
}

// transformOne prepares one change for the store and returns the state after it; ok is false if the state does not
// change.
func (i *Informer[T]) transformOne(d *object.Delta[T], have knownState) (now knownState, ok bool) {
	if d.Type == object.Deleted {
		// The last state is not delivered if the object is unknown or is another one with the same name.
		announced := i.opts.Verbatim || have.exists && object.SameObject(have.uid, d.Item.UID)
		if !announced || !i.decode(&d.Item) {
			d.Item.Decode = func([]byte) (none T, err error) { return none, errUndecodable }
		}
		return knownState{}, true
	}
	if !i.decode(&d.Item) {
		d.Type = object.Bookmark
		return have, false
	}
	return knownState{true, d.Item.Version, d.Item.UID}, true
}

// readable decodes and transforms the last state of a deleted object, unless transformAll has tried that already.
func (i *Informer[T]) readable(it *object.Item[T]) bool {
	if i.batch.transformed {
		return it.Decode == nil
	}
	return i.decode(it)
}
