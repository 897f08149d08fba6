package informer

import (
	"maps"
	"reflect"
	"sync/atomic"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// epochRecord tells, for all snapshots from one commit on, in which epoch each state was read. The writer publishes it
// before that commit, and a reader picks it by the sequence number of its snapshot: see snapshotWithEpochs.
type epochRecord struct {
	epoch uint64 // of every state that is not in older
	from  uint64 // the sequence number of the commit
	// older has the states that are left from earlier epochs. The map does not change once it is published.
	older map[object.Key]*olderState
	// previous is for the snapshots before from. It has no previous itself, so that no more than two are kept.
	previous *epochRecord
}

// olderState is a state of an earlier epoch. It stays in the store because the source has the object in a form that
// cannot be decoded or transformed.
type olderState struct {
	epoch uint64
	until atomic.Uint64 // the sequence number of the commit that changes the object; 0 before that
}

// epochOf returns the epoch in which an object of a snapshot was read.
func (r *epochRecord) epochOf(key object.Key, seq uint64) uint64 {
	if s := r.older[key]; s != nil {
		if until := s.until.Load(); until == 0 || seq < until {
			return s.epoch
		}
	}
	return r.epoch
}

// publishEpoch makes the next commit begin with a record of its own. The commit must be the next thing that the writer
// does to the store.
func (i *Informer[T]) publishEpoch() {
	last := *i.epochs.Load()
	last.previous = nil
	i.epochs.Store(&epochRecord{
		epoch: i.batch.epoch, from: i.batch.seq + 1, older: maps.Clone(i.batch.olderStates), previous: &last,
	})
}

// snapshotWithEpochs returns a snapshot and the record with the epochs of its states.
func (i *Informer[T]) snapshotWithEpochs() (*store.Snapshot[T], *epochRecord) {
	for {
		snap := i.reader.Snapshot()
		for r := i.epochs.Load(); r != nil; r = r.previous {
			if r.from <= snap.Seq() {
				return snap, r
			}
		}
		// Two records were published since the snapshot was taken, so there is a newer snapshot.
	}
}

// isOlderState reports whether the stored state of an object is of an earlier epoch.
func (b *batch[T]) isOlderState(key object.Key) bool {
	if len(b.olderStates) == 0 {
		return false
	}
	_, ok := b.olderStates[key]
	return ok
}

// replaceOlderState records that the open batch gives an object a state of the current epoch.
func (b *batch[T]) replaceOlderState(key object.Key) {
	if len(b.olderStates) == 0 {
		return
	}
	if s := b.olderStates[key]; s != nil {
		s.until.Store(b.seq + 1)
		delete(b.olderStates, key)
	}
}

// keepOlderStates determines, before a list is committed, which objects keep a state of an earlier epoch: those that
// could not be decoded or transformed in the list.
func (b *batch[T]) keepOlderStates(newEpoch bool) {
	before := b.olderStates
	b.olderStates = nil
	for k := range b.kept {
		s := before[k]
		if s == nil && newEpoch {
			s = &olderState{epoch: b.epoch - 1}
		}
		if s != nil {
			if b.olderStates == nil {
				b.olderStates = map[object.Key]*olderState{}
			}
			b.olderStates[k] = s
		}
	}
	b.kept = nil
}

// sameState reports whether a version that occurs again after history was reset stands for the same state.
func sameState[T any](old, now *store.Entry[T]) bool {
	return old != nil && now != nil && old.Version == now.Version && object.SameObject(old.UID, now.UID) &&
		reflect.DeepEqual(old.Object(), now.Object())
}
