package fleet

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/disk"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source/kube"
	"github.com/mirador-k8s/mirador/store"
)

// Gap is a time in which changes of a resource were not seen. If To is zero, it has not ended.
type Gap = disk.Gap

// PastFilter narrows what is read of the past. With a label, more objects may be found than those that had it.
type PastFilter = disk.Filter

// PastChange is a state of an object in its history, or its deletion.
type PastChange = disk.Change

// Moment is a resource as it was at a time.
type Moment struct {
	// Snapshot has the objects that the filter selects, and the index NamespaceIndex. Its version is the newest one of
	// these objects.
	Snapshot *Snapshot
	// Gap is the gap that the moment is in, or nil: changes before the moment may be missing.
	Gap *Gap
	// Mark names the state that was read. At the moment, there may be another one later: with changes that were not on
	// disk yet.
	Mark Mark
}

// PastReason says why the past of a resource cannot be read.
type PastReason uint8

// The reasons of a PastError.
const (
	NoDisk        PastReason = iota + 1 // the fleet keeps nothing on disk
	NoHistory                           // no history is kept of the resource
	BeforeHistory                       // the moment is before the history
	InFuture                            // the moment has not come yet
)

// PastError says why the past of a resource cannot be read.
type PastError struct {
	Cluster  string
	Resource schema.GroupResource
	Reason   PastReason
	// Begin is the earliest moment, for BeforeHistory; zero if the history has not begun.
	Begin time.Time
}

// Error says what to do instead.
func (e *PastError) Error() string {
	of := fmt.Sprintf("%s of cluster %q", e.Resource, e.Cluster)
	switch e.Reason {
	case NoDisk:
		return "the past is not known: the daemon keeps no history; start it with --data DIR"
	case NoHistory:
		return fmt.Sprintf("no history is kept of %s; ask for another resource, or for the present", of)
	case InFuture:
		return fmt.Sprintf("the moment is in the future; ask for %s at an earlier one", of)
	}
	if e.Begin.IsZero() {
		return fmt.Sprintf("the history of %s has not begun; ask again when they are on disk", of)
	}
	return fmt.Sprintf("the history of %s begins at %s; ask for that moment or a later one", of,
		e.Begin.UTC().Format(time.RFC3339Nano))
}

const (
	// writtenMargin is subtracted from the time until which the disk has all changes: one that was being committed at
	// that time may have an earlier one.
	writtenMargin = 50 * time.Millisecond
	// maxWrittenWait is how long a read waits for changes that are not on disk yet.
	maxWrittenWait = 4 * diskInterval
	// pastPace is the number of objects after which a read of the past calls pace.
	pastPace = 64
	// pastEntryBytes is the memory of an object of the past, without its own bytes.
	pastEntryBytes = 320
)

// onDisk is a resource on the disk.
type onDisk struct {
	*disk.Disk
	id disk.Resource
}

// past returns the resource on the disk.
func (r *Resource) past() (*onDisk, error) {
	if r.disk == nil {
		return nil, r.pastError(NoDisk)
	}
	if of := r.gvr.GroupResource(); withoutHistory[of] || isSecrets(of) && !r.secretsOnDisk {
		return nil, r.pastError(NoHistory)
	}
	if r.written.Load() == nil { // the disk may have another state than the one that is mirrored
		all, err := r.disk.Resources(r.cluster)
		if err != nil {
			return nil, err
		}
		for i := range all {
			if s := &all[i]; s.Resource == r.diskID() && s.Fingerprint == r.fingerprint {
				return &onDisk{r.disk, r.diskID()}, nil
			}
		}
		return nil, r.pastError(BeforeHistory)
	}
	return &onDisk{r.disk, r.diskID()}, nil
}

func (r *Resource) diskID() disk.Resource {
	return disk.Resource{Cluster: r.cluster, Group: r.gvr.Group, Version: r.gvr.Version, Resource: r.gvr.Resource}
}

func (r *Resource) pastError(why PastReason) *PastError {
	return &PastError{Cluster: r.cluster, Resource: r.gvr.GroupResource(), Reason: why}
}

// pastErr makes a PastError of an error of the disk, if it is one.
func (r *Resource) pastErr(err error) error {
	var unknown *disk.UnknownError
	var none *disk.NoHistoryError
	var before *disk.BeforeHistoryError
	switch {
	case errors.As(err, &none):
		return r.pastError(NoHistory)
	case errors.As(err, &unknown):
		return r.pastError(BeforeHistory)
	case errors.As(err, &before):
		e := r.pastError(BeforeHistory)
		e.Begin = before.Begin
		return e
	}
	return err
}

// At returns the resource at a moment. The error wraps a PastError if the moment is not known. pace is called every few
// objects with the memory that the snapshot has by then; it may wait, and an error ends the read. It may be nil.
func (r *Resource) At(t time.Time, f PastFilter, pace func(held int64) error) (*Moment, error) {
	if t.After(time.Now()) {
		return nil, r.pastError(InFuture)
	}
	d, err := r.past()
	if err != nil {
		return nil, err
	}
	written := r.written.Load() // before the disk is read, which has what is written until now
	past, err := d.At(d.id, t, f)
	if err != nil {
		return nil, r.pastErr(err)
	}
	defer past.Close()
	m := &Moment{Gap: past.Gap, Mark: Mark{Time: past.Settled}}
	if m.Gap == nil {
		m.Gap = openGap(t, past.Reached, written)
	}
	m.Snapshot, err = loadPast(past, "", pace)
	return m, err
}

// openGap returns the gap after what is on disk, if a time is in it.
func openGap(t, reached time.Time, written *time.Time) *Gap {
	if written != nil && written.After(reached) {
		reached = *written
	}
	if !t.After(reached) {
		return nil
	}
	return &Gap{From: reached}
}

// hasWritten notes that the disk has all changes up to a time, and those of the commits up to a sequence number.
func (r *Resource) hasWritten(until time.Time, seq uint64) {
	until = until.Add(-writtenMargin)
	if was := r.written.Load(); was == nil || was.Before(until) {
		r.written.Store(&until)
	}
	r.writtenSeq.Store(seq)
}

// caughtUp reports whether the disk has everything that is mirrored, and notes until when if so.
func (r *Resource) caughtUp() bool {
	now := time.Now()
	was := r.written.Load()
	commits, err := r.After(r.writtenSeq.Load())
	if err != nil || was == nil || commits.Seq != r.writtenSeq.Load() || !r.watched() {
		return false
	}
	r.written.CompareAndSwap(was, &now)
	return true
}

// AwaitPast waits until the disk has all changes up to a time, which is soon if it works and the cluster can be reached.
// Otherwise it returns after a while, and what is read is in a gap.
func (r *Resource) AwaitPast(ctx context.Context, t time.Time) error {
	tick := time.NewTicker(diskInterval / 10)
	defer tick.Stop()
	for late := time.Now().Add(maxWrittenWait); ; {
		r.caughtUp()
		written := r.written.Load()
		if written == nil || !t.After(*written) || !r.watched() || t.After(time.Now()) || time.Now().After(late) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// loadPast makes a snapshot of a state on disk. Its version is at least the given one. It has no index by labels,
// because their values are not known without reading each object.
func loadPast(past *disk.Restored, newest object.Version, pace func(held int64) error) (*Snapshot, error) {
	w, err := store.New(store.Options[*Object]{Layout: store.Packed, Codec: kube.RawCodec(), ReadCache: -1,
		Indexes: map[string]store.IndexFunc[*Object]{NamespaceIndex: store.ByNamespace[*Object]()}})
	if err != nil {
		return nil, err
	}
	var held int64
	n := 0
	w.BeginReplace()
	for s, err := range past.States() {
		if n++; err == nil && pace != nil && n%pastPace == 0 {
			err = pace(held)
		}
		if err == nil {
			e := entryOf(&s)
			e.Indexed = []store.IndexValues{{Index: NamespaceIndex}}
			err = w.StagePacked(&e)
		}
		if err != nil {
			w.AbortReplace()
			return nil, err
		}
		held += int64(len(s.Object.Data())) + pastEntryBytes
		if newest == "" || newest.Before(s.Version) {
			newest = s.Version
		}
	}
	w.CommitReplace(newest, nil)
	if pace != nil {
		if err := pace(held); err != nil {
			return nil, err
		}
	}
	return w.Reader().Snapshot(), nil
}

// History has the changes of a resource between two times.
type History struct {
	// Changes are by key, and oldest first. What a label selects are all changes of each object that had it at any time.
	// They can be read once, and after an error there are no more.
	Changes iter.Seq2[PastChange, error]
	Gaps    []Gap
	// Begin is when the history begins. Objects that existed then have a change before it.
	Begin time.Time
}

// History returns the changes between two times, both included. The error wraps a PastError if there is no history.
func (r *Resource) History(f PastFilter, from, to time.Time) (*History, error) {
	d, err := r.past()
	if err != nil {
		return nil, err
	}
	h := &History{Changes: d.History(d.id, f, from, to)}
	if h.Begin, err = d.Begin(d.id); err != nil {
		return nil, r.pastErr(err)
	}
	if h.Begin.IsZero() {
		return nil, r.pastError(BeforeHistory)
	}
	if h.Gaps, err = d.Gaps(d.id, from, to); err != nil {
		return nil, r.pastErr(err)
	}
	all, err := d.Resources(r.cluster)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Resource == d.id && (len(h.Gaps) == 0 || !h.Gaps[len(h.Gaps)-1].To.IsZero()) {
			if gap := openGap(to, all[i].Reached, r.written.Load()); gap != nil {
				h.Gaps = append(h.Gaps, *gap)
			}
		}
	}
	return h, nil
}
