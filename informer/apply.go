package informer

import (
	"fmt"
	"reflect"
	"runtime/debug"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// batch is the state of the writing side between deltas.
type batch[T any] struct {
	open      bool // store.Begin was called
	replacing bool // store.BeginReplace was called
	events    []object.Event[*store.Entry[T]]
	ahead     int            // how many deltas there are from here on
	seq       uint64         // of the last commit
	version   object.Version // how far history is complete, the open batch included
	torn      object.Version // up to where coalescing left history without order
	epoch     uint64         // of what is told
	distrust  bool           // of an open list: a known version may be another state
	// kept has, of an open list, the objects that could not be read and stay as they are stored.
	kept map[object.Key]struct{}
	// past is what stays although its history was given up: its versions say nothing
	// about those of the new one.
	past map[object.Key]*olderState
	// transformed says of the changes under way that they are decoded and transformed; see transformAll.
	transformed bool
}

// apply puts deltas into the store and tells the handlers. One commit and one
// publication cover all changes between two marks of a list.
func (i *Informer[T]) apply(deltas []object.Delta[T]) {
	for len(deltas) > 0 {
		part := deltas
		changes := false
		if i.opts.Transform != nil {
			part, changes = i.stretch(deltas)
		}
		if changes {
			i.transformAll(part)
		}
		deltas = deltas[len(part):]
		i.beginWrite()
		i.batch.transformed = changes
		i.applyLocked(part)
		i.batch.transformed = false
		i.endWrite()
	}
}

func (i *Informer[T]) applyLocked(deltas []object.Delta[T]) {
	for n := range deltas {
		d := &deltas[n]
		i.batch.ahead = len(deltas) - n
		if n%store.Together == 0 {
			i.fetch(deltas[n:min(n+store.Together, len(deltas))])
		}
		switch d.Type {
		case nothing:
		case object.ReplaceBegin:
			i.commit()
			i.abandon()
			i.writer.BeginReplace()
			i.batch.replacing, i.batch.distrust = true, d.NewEpoch
		case object.ReplaceAbort:
			i.abandon()
		case object.ReplaceEnd:
			if i.batch.replacing {
				i.replaced(d)
			}
		case object.Replaced:
			i.stage(d)
		case object.Deleted:
			if i.batch.replacing {
				i.writer.Unstage(d.Item.Key)
				delete(i.batch.kept, d.Item.Key)
				continue
			}
			i.remove(d)
		case object.Bookmark:
			if i.batch.replacing {
				continue // the list's own version comes with its end
			}
			i.openBatch()
			i.batch.reach(d)
		default:
			if i.batch.replacing {
				i.stage(d)
				continue
			}
			i.put(d)
		}
	}
	i.commit()
}

// fetch lets the store look for what is about to change, of all deltas at the same time.
func (i *Informer[T]) fetch(deltas []object.Delta[T]) {
	if len(deltas) < 2 || i.reader.Len() == 0 {
		return
	}
	var keys [store.Together]object.Key
	for n := range deltas {
		keys[n] = deltas[n].Item.Key
	}
	i.writer.Fetch(keys[:len(deltas)])
}

func (i *Informer[T]) openBatch() {
	if !i.batch.open {
		i.writer.Begin()
		i.batch.open = true
	}
}

// abandon gives up a list that was begun.
func (i *Informer[T]) abandon() {
	if i.batch.replacing {
		i.writer.AbortReplace()
		i.batch.kept = nil
		i.batch.replacing = false
	}
}

// commit makes the open batch visible, then tells the handlers (P4).
func (i *Informer[T]) commit() {
	if !i.batch.open {
		return
	}
	i.batch.open = false
	i.writer.SetVersion(i.batch.version)
	if i.batch.torn != "" {
		i.writer.EndHistory()
		if !i.batch.version.Before(i.batch.torn) {
			i.batch.torn = ""
		}
	}
	i.batch.seq = i.writer.Commit()
	i.publish()
	i.waiting.advance(i.reader.Version())
}

// publish tells the handlers. A batch without events is told too: handlers wait
// for its number.
func (i *Informer[T]) publish() {
	i.events.Add(uint64(len(i.batch.events)))
	i.fan.Publish(i.batch.seq, i.batch.events)
	i.batch.events = nil // the handlers own it now
}

// publishState tells the handlers of everything that the store has, which they knew
// nothing of.
func (i *Informer[T]) publishState() {
	state := i.replay(object.Added)
	i.events.Add(uint64(i.reader.Len()))
	i.fan.PublishState(i.batch.seq, state.Events)
}

// tell adds an event to the batch.
func (i *Informer[T]) tell(e *object.Event[*store.Entry[T]]) {
	b := &i.batch
	if b.events == nil && !b.replacing {
		// One event for each delta, and seldom more. Grown bit by bit, the events of a
		// batch cost a fifth of its time.
		b.events = make([]object.Event[*store.Entry[T]], 0, b.ahead)
	}
	b.events = append(b.events, *e)
}

// known decides whether a change says nothing new: the store has this version of
// the object, or a later one (P2: never back within an epoch).
func (i *Informer[T]) known(d *object.Delta[T], have *store.Entry[T]) bool {
	return have != nil && !i.batch.isPast(d.Item.Key) && isOld(d, have.Version, have.UID)
}

// isOld reports whether a change says nothing new of an object that is at a version.
func isOld[T any](d *object.Delta[T], version object.Version, uid string) bool {
	order, ok := d.Item.Version.Compare(version)
	if ok && order == 0 {
		return d.Type != object.Deleted && object.SameObject(uid, d.Item.UID)
	}
	return ok && order < 0
}

func (b *batch[T]) isPast(key object.Key) bool {
	if len(b.past) == 0 {
		return false
	}
	_, ok := b.past[key]
	return ok
}

// anew notes that an object has a state of the history that counts, from the open batch on.
func (b *batch[T]) anew(key object.Key) {
	if len(b.past) == 0 {
		return
	}
	if s := b.past[key]; s != nil {
		s.until.Store(b.seq + 1)
		delete(b.past, key)
	}
}

// outlive notes, before a list is committed, which objects stay from a history that was
// given up: those that the list has in a form that could not be read.
func (b *batch[T]) outlive(newEpoch bool) {
	past := b.past
	b.past = nil
	for k := range b.kept {
		s := past[k]
		if s == nil && newEpoch {
			s = &olderState{epoch: b.epoch - 1}
		}
		if s != nil {
			if b.past == nil {
				b.past = map[object.Key]*olderState{}
			}
			b.past[k] = s
		}
	}
	b.kept = nil
}

// reach notes how far history is complete with a delta. Where the queue let a
// later state take an earlier one's place, that is less than the delta's own
// version, and the store's log cannot be in order until both meet again.
func (b *batch[T]) reach(d *object.Delta[T]) {
	if v := d.Through(); v != "" && !v.Before(b.version) {
		b.version = v
	}
	if d.Reached != "" && !d.Item.Version.Before(b.torn) {
		b.torn = d.Item.Version
	}
}

func (i *Informer[T]) put(d *object.Delta[T]) {
	if !i.opts.Verbatim && !i.batch.transformed { // who takes everything need not look, nor who has looked already
		if have, _ := i.writer.Get(d.Item.Key); i.known(d, have) {
			i.stale.Add(1)
			return
		}
	}
	if (d.Item.Decode != nil || i.opts.Transform != nil) && !i.batch.transformed && !i.decode(&d.Item) {
		i.pass(d)
		return
	}
	i.openBatch()
	i.batch.reach(d)
	i.batch.anew(d.Item.Key)
	now, old := i.writer.Put(d.Item)
	i.changed(old, now, d.Item.Version, false)
}

// pass notes the version of a change that cannot be stored: the object stays as it was, and
// whoever waits for the version need not wait for the next change.
func (i *Informer[T]) pass(d *object.Delta[T]) {
	i.openBatch()
	i.batch.reach(d)
}

func (i *Informer[T]) remove(d *object.Delta[T]) {
	have, exists := i.writer.Get(d.Item.Key)
	if !i.opts.Verbatim && !i.batch.transformed && i.known(d, have) {
		i.stale.Add(1)
		return
	}
	i.openBatch()
	i.batch.reach(d)
	if !exists && !i.opts.Verbatim {
		return
	}
	last, uid, missed := have, d.Item.UID, false
	if exists && !i.opts.Verbatim && !object.SameObject(have.UID, d.Item.UID) {
		// Another of its name came and went unseen, coalesced away: what the handlers
		// know is gone, and of its end nothing was seen.
		missed = true
	} else if i.readable(&d.Item) {
		last = i.writer.Last(d.Item)
	}
	if last == nil {
		return // it was never stored, and its last state cannot be read: there is nothing to tell
	}
	if exists && have.UID != "" {
		uid = have.UID
	}
	i.batch.anew(d.Item.Key)
	i.writer.Delete(d.Item.Key, d.Item.Version)
	i.tell(&object.Event[*store.Entry[T]]{Type: object.Deleted, Key: d.Item.Key, Version: d.Item.Version,
		Epoch: i.batch.epoch, Old: last, OldUID: uid, Missed: missed})
}

// changed tells what became of one object: added, updated, deleted unseen, or
// replaced unseen by another of its name (P6).
//
// The handlers of an event share one decoding of a packed object, while anybody has it.
func (i *Informer[T]) changed(old, now *store.Entry[T], at object.Version, initial bool) {
	epoch := i.batch.epoch
	switch {
	case old == nil:
		i.tell(&object.Event[*store.Entry[T]]{Type: object.Added, Key: now.Key, Version: at, Epoch: epoch,
			New: now.Once(), NewUID: now.UID, Initial: initial})
	case now == nil:
		i.tell(&object.Event[*store.Entry[T]]{Type: object.Deleted, Key: old.Key, Version: at, Epoch: epoch,
			Old: old.Once(), OldUID: old.UID, Missed: true})
	case i.opts.Verbatim || object.SameObject(old.UID, now.UID):
		i.tell(&object.Event[*store.Entry[T]]{Type: object.Updated, Key: now.Key, Version: at, Epoch: epoch,
			Old: old.Once(), OldUID: old.UID, New: now.Once(), NewUID: now.UID, Unchanged: old.Version == now.Version})
	default:
		i.changed(old, nil, at, false)
		i.changed(nil, now, at, false)
	}
}

// stage takes one item of a list.
func (i *Informer[T]) stage(d *object.Delta[T]) {
	it := &d.Item
	if !i.batch.replacing {
		return
	}
	if !i.batch.distrust && !i.batch.isPast(it.Key) && i.writer.Seen(it.Key, it.Version, it.UID) {
		if i.opts.Verbatim { // an object listed again is an update, if only of what is there
			i.writer.Repeat(it.Key)
		}
		return
	}
	if !i.opts.Verbatim && i.writer.Staged(it.Key, it.Version, it.UID) {
		return // said twice, and transformed already (P13)
	}
	if !i.decodeListed(it) {
		if i.writer.Keep(it.Key) { // what cannot be read now is not gone
			if i.batch.kept == nil {
				i.batch.kept = map[object.Key]struct{}{}
			}
			i.batch.kept[it.Key] = struct{}{}
		}
		return
	}
	delete(i.batch.kept, it.Key)
	i.writer.Stage(*it)
}

// replaced makes a whole list visible at once.
func (i *Informer[T]) replaced(d *object.Delta[T]) {
	if d.NewEpoch {
		i.batch.epoch++
	}
	hadPast := len(i.batch.past) > 0 // the record may name objects that this list changes
	i.batch.outlive(d.NewEpoch)
	if d.NewEpoch || hadPast {
		i.publishEpoch()
	}
	i.mu.Lock()
	synced, fan := i.synced, i.fan
	i.mu.Unlock()
	first := !isClosed(synced)
	i.batch.replacing = false
	tell := func(old, now *store.Entry[T]) {
		if !i.batch.distrust || !sameState(old, now) {
			i.changed(old, now, d.Item.Version, first)
		}
	}
	if first && i.reader.Len() == 0 {
		tell = nil // the whole state is news, and is read from the snapshot
	}
	i.batch.seq = i.writer.CommitReplace(d.Item.Version, tell)
	i.epoch.Store(i.batch.epoch)
	if first {
		close(synced) // before any handler hears of it: whoever is told may read (P4)
	}
	if tell == nil {
		i.publishState()
	} else {
		i.publish()
	}
	i.batch.version, i.batch.torn = d.Item.Version, ""
	if first {
		fan.MarkSynced(i.batch.seq)
	}
	i.waiting.advance(i.reader.Version())
}

// sameState reports whether a version that was given out again stands for what it stood
// for before.
func sameState[T any](old, now *store.Entry[T]) bool {
	return old != nil && now != nil && old.Version == now.Version && object.SameObject(old.UID, now.UID) &&
		reflect.DeepEqual(old.Object(), now.Object())
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// readable makes the last state of a deleted object readable, unless transformAll has done so, or failed to.
func (i *Informer[T]) readable(it *object.Item[T]) bool {
	if i.batch.transformed {
		return it.Decode == nil
	}
	return i.decode(it)
}

// decode puts the object into the item's Value, decoded and transformed; what fails
// is reported.
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
		it.Encoded, it.Owned = nil, false // it is another object now, and who knows whose
	}
	it.Value, it.Decode = obj, nil
	return true
}

func (i *Informer[T]) transformed(in T) (out T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the transform panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return i.opts.Transform(in)
}
