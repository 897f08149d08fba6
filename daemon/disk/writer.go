package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"

	"github.com/cockroachdb/pebble/v2"

	"github.com/mirador-k8s/mirador/object"
)

// writer is what the commits of one engine know of the stored data, so that most of them read nothing. It is discarded
// after an error, because it may then know of changes that were not written.
type writer struct {
	disk      *Disk
	db        *pebble.DB
	out       *pebble.Batch
	clusters  map[string]*clusterRecord
	resources map[Resource]*written
	touched   map[*written]bool
	history   bool
	changed   map[uint64]bool // hashes of the keys that the batch has changed
	named     map[string]bool // clusters whose record has to be written
	seed      maphash.Seed
	key       []byte // scratch
	value     []byte
	sealed    []byte
}

// written is a resource as its writer knows it.
type written struct {
	res      Resource
	desc     descriptor
	progress progress
	seal     *seal
	segments []segment
	objects  map[uint64]newest // by the hash of the key
	bases    map[uint64]*keptBase
	usedIn   map[uint32]uint32 // the last segment that is known to use a base
	lastBase uint32
	newBases int             // since the last collection
	used     map[uint32]bool // bases that were used since a collection began; nil if there is none
	pause    uint32          // number of the current or last pause of the history, from someTime on
}

// newest is what the writer knows of an object's newest state.
type newest struct {
	labels uint64 // hash of the labels, 0 if there are none
	// pause is 0 if the history has the state. Otherwise it is the number of the pause in which it was written, or
	// someTime.
	pause uint32
}

// someTime stands for a pause before the current one, and for states from before the history began.
const someTime = 1

func newWriter(d *Disk, db *pebble.DB) *writer {
	return &writer{disk: d, db: db, clusters: map[string]*clusterRecord{}, resources: map[Resource]*written{},
		touched: map[*written]bool{}, changed: map[uint64]bool{}, named: map[string]bool{}, seed: maphash.MakeSeed()}
}

// apply adds the changes to a batch of pebble. Without history, new states are not added to the history.
func (w *writer) apply(out *pebble.Batch, ops []op, history bool) error {
	w.out, w.history = out, history
	clear(w.touched)
	clear(w.changed)
	clear(w.named)
	for i := range ops {
		if err := w.op(&ops[i]); err != nil {
			return err
		}
	}
	return w.finish()
}

// finish adds the records of resources and clusters that have changed.
func (w *writer) finish() error {
	for r := range w.touched {
		if err := w.setProgress(r); err != nil {
			return err
		}
		if n := len(r.segments); n > 0 {
			if err := w.setSegment(r, &r.segments[n-1]); err != nil {
				return err
			}
		}
		w.named[r.res.Cluster] = true
	}
	for name := range w.named {
		c, err := w.cluster(name)
		if err != nil {
			return err
		}
		c.written = nanos(w.disk.opts.now())
		if err := w.set(clusterKey(name), c.append(nil)); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) op(o *op) error {
	switch o.kind {
	case opCluster:
		return w.setCluster(o.res.Cluster, o.name)
	case opDocument:
		return w.setDocument(o.res.Cluster, o.name, o.data)
	case opOpen:
		return w.open(o.res, o.opts)
	case opMeta:
		if o.data == nil {
			return w.out.Delete(metaKey(o.name), nil)
		}
		return w.set(metaKey(o.name), o.data)
	}
	r, err := w.resource(o.res)
	if err != nil {
		return err
	}
	w.touched[r] = true
	if err := w.pauseOrResume(r); err != nil {
		return err
	}
	switch o.kind {
	case opPut:
		err = w.put(r, &o.state)
	case opDelete:
		err = w.remove(r, &o.state)
	case opGap:
		err = w.gap(r, nanos(o.state.Time), nanos(o.to))
	case opReach:
		r.progress.version, r.progress.reached = o.state.Version, max(nanos(o.state.Time), r.progress.last)
		if r.progress.begin == 0 && r.desc.history {
			r.progress.begin = r.progress.reached
		}
	}
	if err != nil {
		return fmt.Errorf("write %s of %s: %w", o.state.Key, r.res, err)
	}
	return nil
}

// pauseOrResume begins and ends a pause of the history.
func (w *writer) pauseOrResume(r *written) error {
	p := &r.progress
	if !r.desc.history || w.history == (p.pausing == 0) {
		return nil
	}
	if !w.history {
		p.pausing = max(p.last, 1)
		r.pause++
		return nil
	}
	from := p.pausing
	p.pausing = 0
	return w.gap(r, from, max(p.last, nanos(w.disk.opts.now())))
}

func (w *writer) gap(r *written, from, to int64) error {
	key := binary.BigEndian.AppendUint64(appendData(nil, r.desc.id, kindGap), uint64(from))
	old, err := w.pending(key)
	if err != nil {
		return err
	}
	if len(old) == 8 { // of two gaps that begin at the same time, the longer one has both
		to = max(to, int64(binary.BigEndian.Uint64(old)))
	}
	if to <= from {
		return nil
	}
	w.changed[w.hash(key[dataPrefix:])] = true
	return w.set(key, binary.BigEndian.AppendUint64(nil, uint64(to)))
}

// set adds a key to the batch, which copies both.
func (w *writer) set(key, value []byte) error { return w.out.Set(key, value, nil) }

// drop adds the removal of all keys with a prefix.
func (w *writer) drop(prefix []byte) error { return w.out.DeleteRange(prefix, after(prefix), nil) }

func (w *writer) setProgress(r *written) error {
	w.key, w.value = appendData(w.key[:0], r.desc.id, kindProgress), r.progress.append(w.value[:0])
	return w.set(w.key, w.value)
}

func (w *writer) setSegment(r *written, s *segment) error {
	w.key, w.value = appendSegment(w.key[:0], r.desc.id, kindSegment, s.number), s.append(w.value[:0])
	return w.set(w.key, w.value)
}

// cluster returns a cluster's record.
func (w *writer) cluster(name string) (*clusterRecord, error) {
	if c := w.clusters[name]; c != nil {
		return c, nil
	}
	c, ok, err := loadCluster(w.db, name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("the data folder has no cluster %s; name it with SetCluster first", name)
	}
	w.clusters[name] = &c
	return &c, nil
}

// next returns the next number of a counter. The counters are in the same batch as what was numbered.
func (w *writer) next(counter string) (uint32, error) {
	key := append([]byte{spaceCounter}, counter...)
	if n, ok := w.disk.counters[counter]; ok {
		w.disk.counters[counter] = n + 1
		return n + 1, w.set(key, binary.BigEndian.AppendUint32(nil, n+1))
	}
	b, err := get(w.db, key)
	if err != nil {
		return 0, err
	}
	var n uint32
	if b != nil {
		if len(b) != 4 {
			return 0, errBadRecord
		}
		n = binary.BigEndian.Uint32(b)
	}
	w.disk.counters[counter] = n + 1
	return n + 1, w.set(key, binary.BigEndian.AppendUint32(nil, n+1))
}

func (w *writer) setCluster(name, uid string) error {
	c, ok, err := loadCluster(w.db, name)
	if known := w.clusters[name]; known != nil {
		c, ok = *known, true
	}
	if err != nil {
		return err
	}
	if ok && c.uid != uid {
		if err := w.dropCluster(name, c.id); err != nil {
			return err
		}
		ok = false
	}
	if !ok {
		c = clusterRecord{uid: uid}
		if c.id, err = w.next("cluster"); err != nil {
			return err
		}
	}
	w.clusters[name] = &c
	w.named[name] = true
	return nil
}

// dropCluster removes a cluster and everything of it.
func (w *writer) dropCluster(name string, id uint32) error {
	prefix := append(append([]byte{spaceResource}, name...), 0)
	err := scan(w.db, prefix, func(_, v []byte) error {
		d, err := decodeDescriptor(v)
		if err != nil {
			return err
		}
		from, to := allData(d.id)
		return w.out.DeleteRange(from, to, nil)
	})
	for res, r := range w.resources {
		if res.Cluster == name {
			from, to := allData(r.desc.id)
			err = errors.Join(err, w.out.DeleteRange(from, to, nil))
			delete(w.resources, res)
			delete(w.touched, r)
		}
	}
	delete(w.clusters, name)
	delete(w.named, name)
	return errors.Join(err, w.drop(prefix), w.drop(documentPrefix(id, "")), w.drop(metaKey(ClusterMeta(name))),
		w.out.Delete(clusterKey(name), nil))
}

// open opens a resource, and drops what cannot go on.
func (w *writer) open(res Resource, o ResourceOptions) error {
	if _, err := w.cluster(res.Cluster); err != nil {
		return err
	}
	r, err := w.resource(res)
	var unknown *UnknownError
	if err != nil && !errors.As(err, &unknown) && !errors.Is(err, errOtherKey) {
		return err
	}
	old, found, err := loadDescriptor(w.db, res)
	if err != nil {
		return err
	}
	if r != nil {
		old, found = r.desc, true
	}
	if r != nil && old.fingerprint == o.Fingerprint && old.sealed == o.Sealed {
		if old.history == o.History {
			return nil
		}
		return w.switchHistory(r, o.History)
	}
	if found {
		from, to := allData(old.id)
		if err := w.out.DeleteRange(from, to, nil); err != nil {
			return err
		}
		delete(w.touched, r)
	}
	r = &written{res: res, desc: descriptor{fingerprint: o.Fingerprint, history: o.History, sealed: o.Sealed},
		objects: map[uint64]newest{}, bases: map[uint64]*keptBase{},
		usedIn: map[uint32]uint32{}, pause: someTime}
	if r.desc.id, err = w.next("resource"); err != nil {
		return err
	}
	if r.seal, err = sealNew(w.disk.opts.Key, &r.desc); err != nil {
		return fmt.Errorf("keep %s: %w", res, err)
	}
	w.resources[res], w.touched[r] = r, true
	return w.out.Set(resourceKey(res), r.desc.append(nil), nil)
}

// UnknownError says that nothing is kept of a resource.
type UnknownError struct{ Resource Resource }

// Error names the resource.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("the data folder has nothing of %s", e.Resource)
}

// resource returns a resource that was opened, now or in an earlier process.
func (w *writer) resource(res Resource) (*written, error) {
	if r := w.resources[res]; r != nil {
		return r, nil
	}
	r, err := w.load(res)
	if err != nil {
		return nil, err
	}
	if r.bases, r.lastBase, err = loadKept(w.db, r.desc.id, r.seal); err != nil {
		return nil, err
	}
	if err = w.loadObjects(r); err != nil {
		return nil, err
	}
	w.resources[res] = r
	return r, nil
}

// load returns a stored resource without its objects and bases.
func (w *writer) load(res Resource) (*written, error) {
	r := &written{res: res, pause: someTime, usedIn: map[uint32]uint32{}}
	var ok bool
	var err error
	if r.desc, ok, err = loadDescriptor(w.db, res); err != nil {
		return nil, err
	}
	if !ok {
		return nil, &UnknownError{res}
	}
	if r.seal, err = newSeal(w.disk.opts.Key, &r.desc); err != nil {
		return nil, fmt.Errorf("read %s: %w", res, err)
	}
	if r.progress, err = loadProgress(w.db, r.desc.id); err != nil {
		return nil, err
	}
	if r.progress.pausing != 0 {
		r.pause++
	}
	if r.segments, err = loadSegments(w.db, r.desc.id); err != nil {
		return nil, err
	}
	return r, nil
}

// switchHistory begins or ends the history of a resource.
func (w *writer) switchHistory(r *written, on bool) error {
	r.desc.history, r.progress.begin, r.progress.pausing = on, 0, 0
	w.touched[r] = true
	for h, n := range r.objects {
		n.pause = someTime
		r.objects[h] = n
	}
	if on {
		if err := w.buildPostings(r); err != nil {
			return err
		}
	} else {
		r.segments = nil
		clear(r.usedIn)
		for _, kind := range []byte{kindDeletion, kindSegment, kindHistory, kindGap, kindCarried, kindUse, kindPosting,
			kindUnlabel} {
			if err := w.drop(appendData(nil, r.desc.id, kind)); err != nil {
				return err
			}
		}
	}
	return w.set(resourceKey(r.res), r.desc.append(nil))
}

// loadObjects reads what the writer has to know of each object.
func (w *writer) loadObjects(r *written) error {
	r.objects = make(map[uint64]newest, r.progress.objects)
	err := scan(w.db, appendData(nil, r.desc.id, kindState), func(k, v []byte) error {
		v, err := r.seal.open(w.sealed[:0], k, v)
		if err != nil {
			return err
		}
		at, flags, err := recordTime(v)
		var n newest
		if pausing := r.progress.pausing; flags&flagUnrecorded != 0 && pausing != 0 && at > pausing {
			n.pause = r.pause
		} else if flags&flagUnrecorded != 0 || len(r.segments) == 0 || at < r.segments[0].start {
			n.pause = someTime
		}
		r.objects[w.hash(k[dataPrefix:])] = n
		return err
	})
	if err != nil {
		return err
	}
	return w.loadLabels(r)
}

func (w *writer) hash(key []byte) uint64 { return maphash.Bytes(w.seed, key) }

// stateKey is the object's key in a key of the kinds that end with it.
func stateKey(k []byte) object.Key { return object.Key(k[dataPrefix:]) }
