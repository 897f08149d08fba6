package fleet

import (
	"time"

	"github.com/mirador-k8s/mirador/daemon/disk"
	"github.com/mirador-k8s/mirador/object"
)

// Mark names a state of a resource, so that it can be read after a restart.
type Mark struct {
	// Time is a time on disk of a state of the past. Otherwise it is zero, and the state is that of a version.
	Time    time.Time
	Version object.Version
	// Segment is the number of the break in the order of changes after which the version is: after a break, versions may
	// have begun again.
	Segment int64
}

// writtenOrder are the commits whose changes are on disk in their order, after the break with the segment's number.
type writtenOrder struct {
	segment  int64
	from, to uint64
}

// Mark returns the mark of a snapshot of the resource. ok is false if the disk does not follow the mirror at present.
// Whether the disk has the state is known only when it is read: changes are written after some time.
func (r *Resource) Mark(snap *Snapshot) (m Mark, ok bool) {
	order := r.order.Load()
	if order == nil || snap.Seq() < order.from || !snap.Version().Ordered() {
		return m, false
	}
	if _, err := r.After(order.to); err != nil { // changes are missing in the log, and the disk will break off
		return m, false
	}
	return Mark{Version: snap.Version(), Segment: order.segment}, true
}

// AtMark returns the objects of a mark's state that the filter selects. Their snapshot has the mark's version, if it has
// one. The error wraps a PastError if the state is not on disk. pace is as in At.
func (r *Resource) AtMark(m Mark, f PastFilter, pace func(held int64) error) (*Snapshot, error) {
	d, err := r.past()
	if err != nil {
		return nil, err
	}
	t := m.Time
	known := t.IsZero() // no change is missing between the mark's version and the next change
	if known {
		var ok bool
		if t, ok, err = d.timeOf(m); err != nil {
			return nil, r.pastErr(err)
		}
		if !ok {
			return nil, r.pastError(BeforeHistory)
		}
	}
	past, err := d.At(d.id, t, f)
	if err != nil {
		return nil, r.pastErr(err)
	}
	defer past.Close()
	if past.Gap != nil && !known {
		return nil, r.pastError(BeforeHistory)
	}
	return loadPast(past, m.Version, pace)
}

// timeOf returns a time at which the disk has the state of a mark: after the last change up to the mark's version, and
// before the next one. ok is false if it is not known.
func (d *onDisk) timeOf(m Mark) (t time.Time, ok bool, err error) {
	now, err := d.stored() // before the order of changes, which then has what is written meanwhile
	if err != nil || now == nil {
		return t, false, err
	}
	chunks, err := readRecent(d.Disk, d.id)
	if err != nil {
		return t, false, err
	}
	chunks = append(chunks, recentChunk{broken: true, before: now.Version, settled: now.Settled})
	found := false
	for _, c := range chunks {
		switch {
		case c.broken && c.before == "":
			found = false // what the disk had before has been dropped
		case c.broken && found: // no change came after the mark
			return c.settled, reaches(c.before, m.Version), nil
		}
		if c.segment != m.Segment || c.segment == 0 {
			continue
		}
		if !found && !reaches(m.Version, c.start) {
			return t, false, nil
		}
		found = true
		for _, x := range c.changes {
			if m.Version.Before(x.version) {
				return d.before(x)
			}
		}
	}
	return t, false, nil
}

// reaches reports whether a version is known to be another one or a later one.
func reaches(v, other object.Version) bool {
	order, ok := v.Compare(other)
	return ok && order >= 0
}

// stored returns what the disk says of the resource, nil if it does not have it.
func (d *onDisk) stored() (*disk.StoredResource, error) {
	all, err := d.Resources(d.id.Cluster)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Resource == d.id {
			return &all[i], nil
		}
	}
	return nil, nil
}

// before returns the last moment before a change; ok is false if the change is not in the history.
func (d *onDisk) before(x recentChange) (t time.Time, ok bool, err error) {
	for c, err := range d.History(d.id, disk.Filter{Key: x.key}, x.at, time.Time{}) {
		if err != nil {
			return t, false, err
		}
		if x.is(&c) {
			return c.Time.Add(-1), true, nil
		}
	}
	return t, false, nil
}
