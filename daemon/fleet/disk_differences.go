package fleet

import (
	"strings"
	"time"

	"github.com/mirador-k8s/mirador/daemon/disk"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// reconcile compares the disk with the store, and writes the differences. If these are more than one batch, the disk has
// no state of the resource until they are all written.
func (w *diskWriter) reconcile(r *Resource, have *writtenResource) error {
	if err := w.commit(); err != nil { // also opens the resource
		return err
	}
	read := time.Now()
	epoch := r.inf.Health().Epoch // before the snapshot, so that a reset in between is found the next time
	snap, now := r.Snapshot(), time.Now()
	seq, watched := snap.Seq(), r.watched()
	reset := have.follows && epoch != have.epoch // versions begin again
	have.epoch = epoch
	d := differences{have: have, now: now, labels: labelsOf(snap)}
	entries, _ := snap.Page("", 0)
	known, err := w.known(have)
	if err != nil {
		return err
	}
	if known != nil {
		if !have.follows {
			have.reached = known.Reached
		}
		err = d.find(entries, w.disk.Keys(have.id))
	} else {
		d.put = entries
	}
	if err != nil {
		return err
	}
	if known != nil && !have.reached.IsZero() && now.Sub(have.reached) > gapFrom {
		w.batch.Gap(have.id, have.reached, now)
	}
	if len(d.put)+len(d.deleted) >= diskBatch-1 && known != nil {
		w.batch.Reach(have.id, "", now) // not complete
	}
	for _, e := range d.put {
		s := stateOf(e, now)
		s.Labels = d.labels(e)
		w.batch.Put(have.id, s)
		if err := w.full(); err != nil {
			return err
		}
	}
	for _, key := range d.deleted {
		w.batch.Delete(have.id, key, snap.Version(), now)
		if err := w.full(); err != nil {
			return err
		}
	}
	if have.reached.IsZero() {
		have.reached = now
	}
	if have.history {
		if err := have.recent.load(w.disk); err != nil {
			return err
		}
		if reset || known == nil || known.Version != snap.Version() || len(d.put)+len(d.deleted) > 0 ||
			have.recent.chunk.segment == 0 {
			have.recent.breakOff(w.batch, known, snap.Version(), now)
		}
		have.from = seq
	}
	w.reach(have, seq, snap.Version(), now, watched)
	w.reads(r, read, seq, watched)
	w.marks(r, have, seq)
	return nil
}

// known returns what the disk says of a resource, nil if it has no state of it.
func (w *diskWriter) known(have *writtenResource) (*disk.StoredResource, error) {
	all, err := w.disk.Resources(have.id.Cluster)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Resource == have.id && (all[i].Objects > 0 || !all[i].Reached.IsZero()) {
			return &all[i], nil
		}
	}
	return nil, nil
}

// differences are those of a store and the disk.
type differences struct {
	have    *writtenResource
	now     time.Time
	labels  func(*Entry) []string
	put     []*Entry
	deleted []object.Key
}

// find compares entries with the stored states, both in the order of keys.
func (d *differences) find(entries []*Entry, stored func(func(disk.NewestState, error) bool)) error {
	for s, err := range stored {
		if err != nil {
			return err
		}
		for len(entries) > 0 && entries[0].Key < s.Key {
			d.put, entries = append(d.put, entries[0]), entries[1:]
		}
		switch {
		case len(entries) == 0 || entries[0].Key != s.Key:
			d.deleted = append(d.deleted, s.Key)
		case entries[0].Version != s.Version || entries[0].UID != s.UID:
			d.put, entries = append(d.put, entries[0]), entries[1:]
		default:
			entries = entries[1:]
		}
	}
	d.put = append(d.put, entries...)
	return nil
}

// stateOf returns an entry for the disk, without its labels.
func stateOf(e *Entry, at time.Time) disk.State {
	obj, ok := e.Packed()
	if !ok {
		obj = store.PackWhole(Bytes(e, nil), store.PackedContext(string(e.Key), e.UID, string(e.Version)))
	}
	return disk.State{Key: e.Key, Version: e.Version, UID: e.UID, Size: e.Size, Time: at, Object: obj}
}

func labelsIn(values []store.IndexValues) []string {
	for _, v := range values {
		if v.Index == labelIndex {
			return v.Values
		}
	}
	return nil
}

// labelsOf returns a function for the labels of a snapshot's entries. They are read from the index the first time that
// the function is called: decoding all objects would take much longer.
func labelsOf(snap *Snapshot) func(*Entry) []string {
	var byKey map[object.Key][]string
	return func(e *Entry) []string {
		if byKey == nil {
			byKey = map[object.Key][]string{}
			if index, err := snap.Index(labelIndex); err == nil {
				for label := range index.Values() {
					for e := range index.Entries(label) {
						byKey[e.Key] = append(byKey[e.Key], strings.Clone(label))
					}
				}
			}
		}
		return byKey[e.Key]
	}
}
