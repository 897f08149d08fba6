package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// A view is the data of one resource at one commit.
type view struct {
	disk     *Disk
	engine   *engine
	snap     *pebble.Snapshot
	res      Resource
	desc     descriptor
	progress progress
	seal     *seal
	bases    *readBases
	once     sync.Once
}

// snapshot returns the data at the last commit. The caller calls the function when it does not read any more.
func (d *Disk) snapshot() (*pebble.Snapshot, func(), error) {
	e, err := d.current()
	if err != nil {
		return nil, nil, err
	}
	snap := e.db.NewSnapshot()
	return snap, func() {
		_ = snap.Close() // it has no error but that of a second call
		e.end()
	}, nil
}

// view returns a view of a resource.
func (d *Disk) view(res Resource) (*view, error) {
	e, err := d.current()
	if err != nil {
		return nil, err
	}
	v := &view{disk: d, engine: e, snap: e.db.NewSnapshot(), res: res}
	if err := v.load(); err != nil {
		v.close()
		return nil, v.wrap(err)
	}
	return v, nil
}

// load reads what is known of the resource.
func (v *view) load() (err error) {
	var ok bool
	if v.desc, ok, err = loadDescriptor(v.snap, v.res); err != nil {
		return err
	}
	if !ok {
		return &UnknownError{v.res}
	}
	if v.seal, err = newSeal(v.disk.opts.Key, &v.desc); err != nil {
		return err
	}
	if v.progress, err = loadProgress(v.snap, v.desc.id); err != nil {
		return err
	}
	v.bases = newReadBases(v.snap, v.desc.id, v.seal)
	return nil
}

// close releases the view.
func (v *view) close() {
	v.once.Do(func() {
		_ = v.snap.Close() // it has no error but that of a second call
		v.engine.end()
	})
}

// wrap makes damage of an error that is not about arguments.
func (v *view) wrap(err error) error {
	var unknown *UnknownError
	var damage *DamageError
	switch {
	case err == nil || errors.As(err, &unknown):
		return err
	case v.engine.files.failure() != nil:
		return fmt.Errorf("the data folder %s failed (%w) while %s was read: %w", v.disk.dir, v.engine.files.failure(), v.res,
			err)
	case errors.As(err, &damage):
		return err
	case errors.Is(err, errBadKey), errors.Is(err, errBadRecord), pebble.IsCorruptionError(err):
		return &DamageError{What: "the stored data of " + v.res.String(), Err: err}
	}
	return fmt.Errorf("read %s from the data folder %s: %w", v.res, v.disk.dir, err)
}

// Restored is the state of a resource as it was stored. Its objects can be read once. Close releases what they need;
// reading them to the end does so, too.
type Restored struct {
	// Version is the version of the state; in a state of the past it is empty.
	Version object.Version
	// Reached is until when the resource was watched.
	Reached time.Time
	// Gap, if it is not nil, is the gap that the moment is in: changes before the moment may be missing. If To is zero,
	// the gap has not ended.
	Gap *Gap
	// Settled is a moment with the same state, of which it will not change: not after the moment that was asked for, and
	// before all changes that are not on disk yet. Only in a gap states can still be lost.
	Settled time.Time

	view   *view
	states iter.Seq2[State, error]
}

// States returns the objects in the order of their keys, with their Labels as they were given to Put. After an error
// there are no more.
func (r *Restored) States() iter.Seq2[State, error] {
	return func(yield func(State, error) bool) {
		defer r.Close()
		for s, err := range r.states {
			if !yield(s, r.view.wrap(err)) || err != nil {
				return
			}
		}
	}
}

// Close releases the state. It may be called more than once.
func (r *Restored) Close() { r.view.close() }

// Restore returns the newest state of a resource. The error is an UnknownError if there is none, or if it was never
// complete.
func (d *Disk) Restore(res Resource) (*Restored, error) {
	v, err := d.view(res)
	if err != nil {
		return nil, err
	}
	if v.progress.reached == 0 {
		v.close()
		return nil, &UnknownError{res}
	}
	return &Restored{Version: v.progress.version, Reached: instant(v.progress.reached), view: v, states: v.newest()}, nil
}

// newest iterates over the newest states.
func (v *view) newest() iter.Seq2[State, error] {
	return func(yield func(State, error) bool) {
		if err := v.yieldNewest(yield); err != nil && !errors.Is(err, errStop) {
			yield(State{}, err)
		}
	}
}

func (v *view) yieldNewest(yield func(State, error) bool) (err error) {
	labels, err := v.labels()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, labels.it.Close()) }()
	v.bases.readAhead()
	n := uint64(0)
	err = v.eachNewest(func(key string, rec *record) error {
		n++
		s, err := v.bases.state(key, rec)
		if err != nil {
			return err
		}
		if _, s.Labels, err = labels.of(key); err == nil && !yield(s, nil) {
			err = errStop
		}
		return err
	})
	if err == nil && n != v.progress.objects {
		err = &DamageError{What: "the stored data of " + v.res.String(),
			Err: fmt.Errorf("it has %d objects instead of %d", n, v.progress.objects)}
	}
	return err
}

// errStop ends a scan early.
var errStop = errors.New("stopped")

// eachNewest calls do with the record of each newest state.
func (v *view) eachNewest(do func(key string, rec *record) error) error {
	var plain []byte
	return scan(v.snap, appendData(nil, v.desc.id, kindState), func(k, value []byte) error {
		var err error
		if plain, err = v.open(plain, k, value); err != nil {
			return err
		}
		rec, err := decodeRecord(plain)
		if err != nil {
			return err
		}
		return do(string(stateKey(k)), &rec)
	})
}

// open decrypts a value. dst is scratch.
func (v *view) open(dst, key, value []byte) ([]byte, error) {
	if v.seal == nil {
		return value, nil
	}
	return v.seal.open(dst[:0], key, value)
}

// stateOf makes a state.
func stateOf(key string, r *record, o store.PackedObject) State {
	return State{Key: object.Key(key), Version: r.version, UID: r.uid, Size: r.size, Time: instant(r.time), Object: o}
}

// Keys iterates over the newest states of a resource, in the order of their keys. After an error there are no more.
func (d *Disk) Keys(res Resource) iter.Seq2[NewestState, error] {
	return func(yield func(NewestState, error) bool) {
		v, err := d.view(res)
		if err != nil {
			yield(NewestState{}, err)
			return
		}
		defer v.close()
		err = v.eachNewest(func(key string, rec *record) error {
			if !yield(NewestState{object.Key(key), rec.version, rec.uid}, nil) {
				return errStop
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(NewestState{}, v.wrap(err))
		}
	}
}

// Cluster is a stored cluster.
type Cluster struct {
	Name, UID string
	// Written is when something of it was written last.
	Written time.Time
}

// Clusters returns the stored clusters by name.
func (d *Disk) Clusters() (all []Cluster, err error) {
	snap, done, err := d.snapshot()
	if err != nil {
		return nil, err
	}
	defer done()
	err = scan(snap, []byte{spaceCluster}, func(k, v []byte) error {
		c, err := decodeCluster(v)
		all = append(all, Cluster{string(k[1:]), c.uid, instant(c.written)})
		return err
	})
	return all, d.wrap("the list of clusters", err)
}

// wrap makes damage of an error of a read that is not about one resource.
func (d *Disk) wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, errBadKey) || errors.Is(err, errBadRecord) || pebble.IsCorruptionError(err) {
		return &DamageError{What: what, Err: err}
	}
	return fmt.Errorf("read %s from the data folder %s: %w", what, d.dir, err)
}

// Document returns a document of a cluster, or nil if there is none.
func (d *Disk) Document(cluster, name string) ([]byte, error) {
	snap, done, err := d.snapshot()
	if err != nil {
		return nil, err
	}
	defer done()
	what := "the document " + name + " of cluster " + cluster
	c, ok, err := loadCluster(snap, cluster)
	if err != nil || !ok {
		return nil, d.wrap(what, err)
	}
	data, err := readDocument(snap, c.id, name)
	return data, d.wrap(what, err)
}

// Documents returns the names of a cluster's documents.
func (d *Disk) Documents(cluster string) (names []string, err error) {
	snap, done, err := d.snapshot()
	if err != nil {
		return nil, err
	}
	defer done()
	c, ok, err := loadCluster(snap, cluster)
	if err == nil && ok {
		names, err = documentNames(snap, c.id)
	}
	return names, d.wrap("the documents of cluster "+cluster, err)
}

func documentNames(r pebble.Reader, cluster uint32) (names []string, err error) {
	prefix := documentPrefix(cluster, "")
	err = scan(r, prefix, func(k, _ []byte) error {
		if len(k) < len(prefix)+5 {
			return errBadKey
		}
		if name := k[len(prefix) : len(k)-5]; binary.BigEndian.Uint32(k[len(k)-4:]) == 0 {
			names = append(names, string(name))
		}
		return nil
	})
	return names, err
}

// Meta returns a value of SetMeta, or nil if there is none.
func (d *Disk) Meta(name string) ([]byte, error) {
	snap, done, err := d.snapshot()
	if err != nil {
		return nil, err
	}
	defer done()
	v, err := get(snap, metaKey(name))
	return v, d.wrap("the value "+name, err)
}

// Metas returns the values of SetMeta whose names begin with a prefix.
func (d *Disk) Metas(prefix string) (values map[string][]byte, err error) {
	snap, done, err := d.snapshot()
	if err != nil {
		return nil, err
	}
	defer done()
	values = map[string][]byte{}
	err = scan(snap, metaKey(prefix), func(k, v []byte) error {
		values[string(k[1:])] = slices.Clone(v)
		return nil
	})
	return values, d.wrap("the values "+prefix+"…", err)
}

// StoredResource is a stored resource.
type StoredResource struct {
	Resource
	ResourceOptions
	// Version is what the last Reach said; it is empty if the resource was never complete.
	Version object.Version
	Reached time.Time
	// Settled is a moment with the newest state: later changes have later times.
	Settled time.Time
	Objects int
}

// Resources returns the stored resources of a cluster.
func (d *Disk) Resources(cluster string) (all []StoredResource, err error) {
	snap, done, err := d.snapshot()
	if err != nil {
		return nil, err
	}
	defer done()
	err = scan(snap, append(append([]byte{spaceResource}, cluster...), 0), func(k, v []byte) error {
		res, err := splitResource(k)
		if err != nil {
			return err
		}
		desc, err := decodeDescriptor(v)
		if err != nil {
			return err
		}
		p, err := loadProgress(snap, desc.id)
		all = append(all, StoredResource{res, ResourceOptions{desc.fingerprint, desc.history, desc.sealed}, p.version,
			instant(p.reached), instant(p.settled()), int(p.objects)})
		return err
	})
	return all, d.wrap("the resources of cluster "+cluster, err)
}
