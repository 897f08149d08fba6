package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/disk"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

const (
	// diskInterval is how often changes are written. With the time of a write it is what a crash can lose.
	diskInterval = 250 * time.Millisecond
	// diskRetry is how long the writer waits after an error.
	diskRetry = 5 * time.Second
	// diskBatch is how many changes one batch has, if they need not be written together.
	diskBatch = 2000
	// reachedEvery is how often the disk notes that a resource is watched, if nothing changes.
	reachedEvery = 15 * time.Second
	// restorePatience is how long the writer waits for what the disk has to be read, which it would delay.
	restorePatience = 10 * time.Second
	// gapFrom is how long a resource must have been unwatched for that to count as a gap in its history.
	gapFrom = 2 * time.Second
)

// withoutHistory are resources that change all the time and whose past nobody asks for.
var withoutHistory = map[schema.GroupResource]bool{
	{Resource: "events"}:                               true,
	{Group: "events.k8s.io", Resource: "events"}:       true,
	{Group: "coordination.k8s.io", Resource: "leases"}: true,
}

func isSecrets(of schema.GroupResource) bool { return of == schema.GroupResource{Resource: "secrets"} }

// diskWriter writes what is mirrored to the disk. It reads the stores' logs of changes like any reader, and no mirror
// waits for it. If it falls behind the end of a log, it compares the disk with the store.
type diskWriter struct {
	fleet    *Fleet
	disk     *disk.Disk
	batch    *disk.Batch
	commits  []func() // called when the batch is on disk
	clusters map[*Cluster]*writtenCluster
	reported string // the last error that was logged
}

// writtenCluster is what the disk has of a cluster.
type writtenCluster struct {
	groups    []group
	version   *serverVersion
	documents map[string]*document
	resources map[*Resource]*writtenResource
}

// writtenResource is what the disk has of a resource.
type writtenResource struct {
	id      disk.Resource
	refused bool   // it is not kept on disk
	follows bool   // the disk has the state of commit seq
	resumed bool   // the first write follows a restart
	epoch   uint64 // of the state of commit seq
	seq     uint64 // the last commit that is on disk
	version object.Version
	reached time.Time // until when it was watched; zero if that is not known
	history bool      // earlier states are kept
	recent  recentWriter
	from    uint64 // the commit since which the order of changes on disk is complete
	gone    bool   // scratch
}

func newDiskWriter(f *Fleet) *diskWriter {
	return &diskWriter{fleet: f, disk: f.opts.Disk, clusters: map[*Cluster]*writtenCluster{}}
}

// run writes until ctx ends.
func (w *diskWriter) run(ctx context.Context) {
	w.untilRestored(ctx)
	timer := time.NewTimer(diskInterval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		wait := diskInterval
		if err := w.write(ctx); err != nil && ctx.Err() == nil {
			wait = diskRetry
			w.report(err.Error())
			w.clusters = map[*Cluster]*writtenCluster{} // what is on disk is found out again
		} else if ctx.Err() == nil {
			w.report("")
		}
		timer.Reset(wait)
	}
}

// untilRestored waits until everything on disk is served: before it writes the first change of a resource, the writer
// reads most of what the disk has of it.
func (w *diskWriter) untilRestored(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, restorePatience)
	defer cancel()
	w.fleet.WaitRestored(ctx)
}

// report logs an error, or its end, once.
func (w *diskWriter) report(text string) {
	switch {
	case text == w.reported:
	case text == "":
		w.fleet.log.Info("fleet: writing to disk goes on")
	default:
		w.fleet.log.Warn("fleet: write to disk; the mirror goes on in memory", "error", text)
	}
	w.reported = text
}

// write writes what has changed since the last call.
func (w *diskWriter) write(ctx context.Context) error {
	members := w.fleet.Clusters()
	for c := range w.clusters {
		if !slices.Contains(members, c) {
			delete(w.clusters, c)
		}
	}
	w.batch, w.commits = w.disk.NewBatch(), nil
	if err := w.writeTokenKey(); err != nil {
		return err
	}
	for _, c := range members {
		if err := w.writeCluster(ctx, c); err != nil {
			return fmt.Errorf("cluster %q: %w", c.name, err)
		}
	}
	return w.commit()
}

// commit writes the batch.
func (w *diskWriter) commit() error {
	if w.batch.Len() > 0 {
		if err := w.batch.Commit(); err != nil {
			return err
		}
	}
	for _, done := range w.commits {
		done()
	}
	w.commits = nil
	return nil
}

// full writes the batch if it is large.
func (w *diskWriter) full() error {
	if w.batch.Len() < diskBatch {
		return nil
	}
	return w.commit()
}

func (w *diskWriter) writeCluster(ctx context.Context, c *Cluster) error {
	uid := c.uid.Load()
	if uid == nil || *uid == "" {
		return nil // it is not known which cluster it is
	}
	have := w.clusters[c]
	if have == nil {
		have = &writtenCluster{documents: map[string]*document{}, resources: map[*Resource]*writtenResource{}}
		w.batch.SetCluster(c.name, *uid)
		if err := w.commit(); err != nil { // it may drop what another cluster of this name had
			return err
		}
		w.clusters[c] = have
	}
	if err := w.writeDocuments(c, have); err != nil {
		return err
	}
	resources := c.resources.Load().sorted
	for _, r := range have.resources {
		r.gone = true
	}
	for _, r := range resources {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := w.writeResource(c, have, r); err != nil {
			return fmt.Errorf("%s: %w", r.gvr.GroupResource(), err)
		}
		if err := w.full(); err != nil {
			return err
		}
	}
	maps.DeleteFunc(have.resources, func(_ *Resource, r *writtenResource) bool { return r.gone })
	return nil
}

// writeDocuments writes what the cluster says about itself, where it has changed.
func (w *diskWriter) writeDocuments(c *Cluster, have *writtenCluster) error {
	c.mu.Lock()
	groups := c.groups
	c.mu.Unlock()
	if len(groups) > 0 && (len(have.groups) == 0 || &groups[0] != &have.groups[0]) {
		data, err := encodeGroups(groups)
		if err != nil {
			return err
		}
		if err := w.setDocument(c, discoveryDocument, data); err != nil {
			return err
		}
		have.groups = groups
	}
	if v := c.version.Load(); v != nil && (have.version == nil || !bytes.Equal(v.body, have.version.body)) {
		if err := w.setDocument(c, versionDocument, v.body); err != nil {
			return err
		}
		have.version = v
	}
	now := c.docs.all()
	for path, doc := range now {
		if have.documents[path] == doc {
			continue
		}
		data, err := encodeDocument(doc)
		if err == nil {
			err = w.setDocument(c, openAPIPrefix+path, data)
		}
		if err != nil {
			return err
		}
	}
	for path := range have.documents {
		if now[path] == nil {
			w.batch.SetDocument(c.name, openAPIPrefix+path, nil)
		}
	}
	have.documents = now
	return nil
}

// setDocument writes a document unless the disk has it already.
func (w *diskWriter) setDocument(c *Cluster, name string, data []byte) error {
	stored, err := w.disk.Document(c.name, name)
	if err == nil && !bytes.Equal(stored, data) {
		w.batch.SetDocument(c.name, name, data)
	}
	return err
}

// writeResource writes the changes of a resource.
func (w *diskWriter) writeResource(c *Cluster, of *writtenCluster, r *Resource) error {
	have := of.resources[r]
	if have == nil {
		have = &writtenResource{id: r.diskID(), recent: recentWriter{id: r.diskID()}}
		of.resources[r] = have
		w.open(r, have)
	}
	have.gone = false
	if have.refused || !r.inf.HasSynced() || r.inf.ended() {
		return nil
	}
	if !have.follows {
		resumed, err := w.resume(r, have)
		switch {
		case err != nil:
			return err
		case !resumed && r.Restored():
			return nil // the disk has it, and the cluster has not confirmed it yet
		case !resumed:
			return w.reconcile(r, have)
		}
	}
	read := time.Now()
	changes, err := r.After(have.seq)
	if errors.Is(err, store.ErrGone) {
		return w.reconcile(r, have)
	}
	if err != nil {
		return err
	}
	if r.inf.Health().Epoch != have.epoch { // read after the changes
		return w.reconcile(r, have)
	}
	now := time.Now()
	idle := now.Sub(have.reached) >= reachedEvery
	watched := r.watched()
	if changes.Seq == have.seq && watched {
		r.hasWritten(read, have.seq)
	}
	if changes.Seq == have.seq && (!watched || changes.Version == have.version && !idle) {
		return nil
	}
	w.gap(have, now, changes.Changes)
	var recent []recentChange
	for change := range changes.Changes {
		order := recentChange{key: change.Key, version: change.Version, at: change.At}
		if change.New == nil {
			recent = append(recent, order)
			w.batch.Delete(have.id, change.Key, change.Version, change.At)
			continue
		}
		order.state = change.New.Version
		recent = append(recent, order)
		s := stateOf(change.New, change.At)
		if change.Indexed == nil {
			s.SameLabels = true
		} else {
			s.Labels = labelsIn(change.Indexed)
		}
		w.batch.Put(have.id, s)
	}
	if have.history {
		have.recent.follow(w.batch, have.version, recent)
	}
	w.reach(have, changes.Seq, changes.Version, now, watched)
	w.reads(r, read, changes.Seq, watched)
	w.marks(r, have, changes.Seq)
	return nil
}

// marks makes states after the commit from which the order of changes is known findable, when the batch is on disk.
func (w *diskWriter) marks(r *Resource, have *writtenResource, seq uint64) {
	if have.history {
		next := &writtenOrder{segment: have.recent.chunk.segment, from: have.from, to: seq}
		w.commits = append(w.commits, func() { r.order.Store(next) })
	}
}

// reads makes the past readable until a time, when the batch is on disk.
func (w *diskWriter) reads(r *Resource, until time.Time, seq uint64, watched bool) {
	if watched {
		w.commits = append(w.commits, func() { r.hasWritten(until, seq) })
	}
}

// open says how a resource is kept.
func (w *diskWriter) open(r *Resource, have *writtenResource) {
	of := r.gvr.GroupResource()
	secrets := isSecrets(of)
	have.history = !withoutHistory[of]
	err := errors.New("secrets are not kept on disk")
	if !secrets || w.fleet.opts.DiskSecrets {
		err = w.batch.Open(have.id, disk.ResourceOptions{Fingerprint: r.fingerprint, History: have.history,
			Sealed: secrets})
	}
	have.refused = err != nil
}

// resume makes the disk follow a state that was restored from it. It reports false if the changes since then are not
// known, or the disk has another state.
func (w *diskWriter) resume(r *Resource, have *writtenResource) (bool, error) {
	seq, ok := r.restoredSeq()
	if !ok {
		return false, nil
	}
	if err := w.commit(); err != nil { // also opens the resource
		return false, err
	}
	known, err := w.known(have)
	if err != nil || known == nil || known.Version != r.before.upTo {
		return false, err
	}
	if have.history {
		if err := have.recent.load(w.disk); err != nil || have.recent.chunk.segment == 0 {
			return false, err
		}
	}
	have.follows, have.resumed, have.from = true, true, seq
	have.seq, have.version, have.reached = seq, known.Version, known.Reached
	w.marks(r, have, seq)
	return true, w.commit()
}

// gap notes a time in which the resource was not watched, up to now or to the first change after a restart.
func (w *diskWriter) gap(have *writtenResource, now time.Time, changes iter.Seq[store.LogEntry[*Object]]) {
	most := reachedEvery + gapFrom
	if have.resumed {
		most = gapFrom
		for c := range changes {
			now = c.At.Add(-time.Nanosecond)
			break
		}
	}
	if !have.reached.IsZero() && now.Sub(have.reached) > most {
		w.batch.Gap(have.id, have.reached, now)
	}
}

// reach notes that the disk has a resource's state after a commit.
func (w *diskWriter) reach(have *writtenResource, seq uint64, version object.Version, now time.Time, watched bool) {
	if !watched {
		now = have.reached
	}
	w.batch.Reach(have.id, version, now)
	w.commits = append(w.commits, func() {
		have.follows, have.resumed, have.seq, have.version, have.reached = true, false, seq, version, now
	})
}
