package informer

import (
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// batch is the state of the writing side between deltas.
type batch[T any] struct {
	open      bool // store.Begin was called
	replacing bool // store.BeginReplace was called
	events    []object.Event[*store.Entry[T]]
	remaining int            // number of deltas from the current one on
	seq       uint64         // sequence number of the last commit
	version   object.Version // up to which history is complete, including the open batch
	epoch     uint64         // of the events
	// unorderedUpTo is the version up to which coalescing has left history without order; "" if it is in order.
	unorderedUpTo object.Version
	// versionsReused says that in the open list a known version may stand for another state.
	versionsReused bool
	// kept has the objects of the open list that could not be decoded or transformed. They keep their stored state.
	kept map[object.Key]struct{}
	// olderStates has the stored states of earlier epochs. Their versions do not compare with those of this epoch.
	olderStates map[object.Key]*olderState
	// transformed says that the current deltas are already decoded and transformed; see transformAll.
	transformed bool
}

// apply writes deltas to the store and publishes the events. All changes between two lists are one commit and one
// publication.
func (i *Informer[T]) apply(deltas []object.Delta[T]) {
	for len(deltas) > 0 {
		part := deltas
		changes := false
		if i.opts.Transform != nil {
			part, changes = i.nextPart(deltas)
		}
		if changes {
			i.transformAll(part)
		}
		deltas = deltas[len(part):]
		i.applyPart(part, changes)
	}
}

// applyPart is apply for deltas that were transformed if they have to be. A callback that ends the goroutine leaves
// neither the lock nor the batch open, for which readers of the store would wait.
func (i *Informer[T]) applyPart(deltas []object.Delta[T], transformed bool) {
	i.beginWrite()
	i.batch.transformed = transformed
	defer func() {
		i.commit()
		i.batch.transformed = false
		i.endWrite()
	}()
	for n := range deltas {
		d := &deltas[n]
		i.batch.remaining = len(deltas) - n
		if n%store.Together == 0 {
			i.fetch(deltas[n:min(n+store.Together, len(deltas))])
		}
		switch d.Type {
		case nothing:
		case object.ReplaceBegin:
			i.commit()
			i.abandon()
			i.writer.BeginReplace()
			i.batch.replacing, i.batch.versionsReused = true, d.NewEpoch
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
}

// fetch looks up the stored objects of several deltas together, so that their cache misses overlap.
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

// abandon discards the open list.
func (i *Informer[T]) abandon() {
	if i.batch.replacing {
		i.writer.AbortReplace()
		i.batch.kept = nil
		i.batch.replacing = false
	}
}

// commit makes the open batch visible and then publishes its events (P4).
func (i *Informer[T]) commit() {
	if !i.batch.open {
		return
	}
	i.batch.open = false
	i.writer.SetVersion(i.batch.version)
	if i.batch.unorderedUpTo != "" {
		i.writer.EndHistory()
		if !i.batch.version.Before(i.batch.unorderedUpTo) {
			i.batch.unorderedUpTo = ""
		}
	}
	i.batch.seq = i.writer.Commit()
	i.publish()
	i.waiting.advance(i.reader.Version())
}

// publish publishes the events of the batch. A batch without events is published too, because handlers wait for its
// sequence number.
func (i *Informer[T]) publish() {
	i.events.Add(uint64(len(i.batch.events)))
	i.fan.Publish(i.batch.seq, i.batch.events)
	i.batch.events = nil // the handlers own it now
}

// publishState publishes the whole store as added objects.
func (i *Informer[T]) publishState() {
	state := i.replay(object.Added)
	i.events.Add(uint64(i.reader.Len()))
	i.fan.PublishState(i.batch.seq, state.Events)
}

// addEvent adds an event to the batch.
func (i *Informer[T]) addEvent(e *object.Event[*store.Entry[T]]) {
	b := &i.batch
	if b.events == nil && !b.replacing {
		// There is one event for each delta, and seldom more.
		b.events = make([]object.Event[*store.Entry[T]], 0, b.remaining)
	}
	b.events = append(b.events, *e)
}

// known reports whether the store already has this version of the object or a later one (P2: an object never goes back
// within an epoch).
func (i *Informer[T]) known(d *object.Delta[T], have *store.Entry[T]) bool {
	return have != nil && !i.batch.isOlderState(d.Item.Key) && isOld(d, have.Version, have.UID)
}

// isOld reports whether a delta is not newer than the given state of its object.
func isOld[T any](d *object.Delta[T], version object.Version, uid string) bool {
	order, ok := d.Item.Version.Compare(version)
	if ok && order == 0 {
		return d.Type != object.Deleted && object.SameObject(uid, d.Item.UID)
	}
	return ok && order < 0
}

// reach records the version up to which history is complete with a delta. After the queue has coalesced, that is older
// than the delta's own version, and the store's log is not in order until the versions have caught up.
func (b *batch[T]) reach(d *object.Delta[T]) {
	if v := d.Through(); v != "" && !v.Before(b.version) {
		b.version = v
	}
	if d.Reached != "" && !d.Item.Version.Before(b.unorderedUpTo) {
		b.unorderedUpTo = d.Item.Version
	}
}

// put stores a new state of an object and adds the event, unless the store already has that state or a later one.
func (i *Informer[T]) put(d *object.Delta[T]) {
	if !i.opts.Verbatim && !i.batch.transformed { // transformAll has checked already
		if have, _ := i.writer.Get(d.Item.Key); i.known(d, have) {
			i.stale.Add(1)
			return
		}
	}
	if (d.Item.Decode != nil || i.opts.Transform != nil) && !i.batch.transformed && !i.decode(&d.Item) {
		i.skip(d)
		return
	}
	i.openBatch()
	i.batch.replaceOlderState(d.Item.Key)
	now, old := i.writer.Put(d.Item)
	i.batch.reach(d) // if a callback has ended the goroutine, the version is not reached
	i.changed(old, now, d.Item.Version, false)
}

// skip records the version of a change that cannot be stored. The object keeps its state, and a WaitVersion for this
// version need not wait for the next change.
func (i *Informer[T]) skip(d *object.Delta[T]) {
	i.openBatch()
	i.batch.reach(d)
}

// remove deletes an object from the store and adds the event, unless the store has a later state of it.
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
		// The deleted object has another UID: it replaced the known object, and both changes were coalesced. The known
		// object was deleted too, and its deletion was missed.
		missed = true
	} else if i.readable(&d.Item) {
		last = i.writer.Last(d.Item)
	}
	if last == nil {
		return // it was never stored, and its last state cannot be decoded: there is nothing to deliver
	}
	if exists && have.UID != "" {
		uid = have.UID
	}
	i.batch.replaceOlderState(d.Item.Key)
	i.writer.Delete(d.Item.Key, d.Item.Version)
	i.addEvent(&object.Event[*store.Entry[T]]{Type: object.Deleted, Key: d.Item.Key, Version: d.Item.Version,
		Epoch: i.batch.epoch, Old: last, OldUID: uid, Missed: missed})
}

// changed adds the events for a change of one object: added, updated, deleted, or replaced by another object with the
// same name (P6).
//
// The handlers of an event share one decoded copy of a packed object.
func (i *Informer[T]) changed(old, now *store.Entry[T], at object.Version, initial bool) {
	epoch := i.batch.epoch
	switch {
	case old == nil:
		i.addEvent(&object.Event[*store.Entry[T]]{Type: object.Added, Key: now.Key, Version: at, Epoch: epoch,
			New: now.DecodeOnce(), NewUID: now.UID, Initial: initial})
	case now == nil:
		i.addEvent(&object.Event[*store.Entry[T]]{Type: object.Deleted, Key: old.Key, Version: at, Epoch: epoch,
			Old: old.DecodeOnce(), OldUID: old.UID, Missed: true})
	case i.opts.Verbatim || object.SameObject(old.UID, now.UID):
		i.addEvent(&object.Event[*store.Entry[T]]{Type: object.Updated, Key: now.Key, Version: at, Epoch: epoch,
			Old: old.DecodeOnce(), OldUID: old.UID, New: now.DecodeOnce(), NewUID: now.UID,
			Unchanged: old.Version == now.Version})
	default:
		i.changed(old, nil, at, false)
		i.changed(nil, now, at, false)
	}
}

// stage adds one item to the open list.
func (i *Informer[T]) stage(d *object.Delta[T]) {
	it := &d.Item
	if !i.batch.replacing {
		return
	}
	if !i.batch.versionsReused && !i.batch.isOlderState(it.Key) && i.writer.Seen(it.Key, it.Version, it.UID) {
		if i.opts.Verbatim { // an object that is listed again is an update, even if it is unchanged
			i.writer.Repeat(it.Key)
		}
		return
	}
	if !i.opts.Verbatim && i.writer.Staged(it.Key, it.Version, it.UID) {
		return // the list contains it twice, and it is transformed already (P13)
	}
	if !i.decodeListed(it) {
		if i.writer.Keep(it.Key) { // an object that cannot be decoded is not deleted
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

// replaced commits the open list as a whole.
func (i *Informer[T]) replaced(d *object.Delta[T]) {
	if d.NewEpoch {
		i.batch.epoch++
	}
	hadOlderStates := len(i.batch.olderStates) > 0 // the record may contain objects that this list changes
	i.batch.keepOlderStates(d.NewEpoch)
	if d.NewEpoch || hadOlderStates {
		i.publishEpoch()
	}
	i.mu.Lock()
	synced, fan := i.synced, i.fan
	i.mu.Unlock()
	first := !isClosed(synced)
	i.batch.replacing = false
	deliver := func(old, now *store.Entry[T]) {
		if !i.batch.versionsReused || !sameState(old, now) {
			i.changed(old, now, d.Item.Version, first)
		}
	}
	if first && i.reader.Len() == 0 {
		deliver = nil // all objects are new: publishState reads them from the snapshot
	}
	i.batch.seq = i.writer.CommitReplace(d.Item.Version, deliver)
	i.epoch.Store(i.batch.epoch)
	if first {
		close(synced) // before any handler runs: it may read the store (P4)
	}
	if deliver == nil {
		i.publishState()
	} else {
		i.publish()
	}
	i.batch.version, i.batch.unorderedUpTo = d.Item.Version, ""
	if first {
		fan.MarkSynced(i.batch.seq)
	}
	i.waiting.advance(i.reader.Version())
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
