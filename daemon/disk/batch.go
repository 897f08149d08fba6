package disk

import (
	"errors"
	"fmt"
	"time"

	"github.com/mirador-k8s/mirador/object"
)

// A Batch collects changes. Nothing of it is written before Commit, and Commit writes all or nothing. One goroutine at
// a time may use it.
type Batch struct {
	disk *Disk
	ops  []op
	err  error // the first wrong argument
}

// An op is one change of a batch.
type op struct {
	kind  opKind
	res   Resource
	state State
	opts  ResourceOptions
	to    time.Time
	name  string // of a document or value; a cluster's UID
	data  []byte
}

type opKind uint8

const (
	opCluster opKind = iota
	opDocument
	opOpen
	opPut
	opDelete
	opGap
	opReach
	opMeta
)

// NewBatch returns an empty batch.
func (d *Disk) NewBatch() *Batch { return &Batch{disk: d} }

// Len returns the number of changes in the batch.
func (b *Batch) Len() int { return len(b.ops) }

func (b *Batch) add(o op, checks ...error) {
	if err := errors.Join(checks...); err != nil {
		b.err = errors.Join(b.err, err)
		return
	}
	b.ops = append(b.ops, o)
}

// SetCluster says which cluster the name stands for. If it was another one, everything of that is dropped. It must come
// before anything else of a new cluster.
func (b *Batch) SetCluster(name, uid string) {
	b.add(op{kind: opCluster, res: Resource{Cluster: name}, name: uid}, checkName("the cluster's name", name))
}

// MaxDocument is the largest document.
const MaxDocument = 32 << 20

// SetDocument stores a document of a cluster, such as its discovery. nil deletes it. The batch keeps data.
func (b *Batch) SetDocument(cluster, name string, data []byte) {
	var size error
	if len(data) > MaxDocument {
		size = fmt.Errorf("the document %s of cluster %s has %d bytes; at most %d are kept", name, cluster, len(data),
			MaxDocument)
	}
	b.add(op{kind: opDocument, res: Resource{Cluster: cluster}, name: name, data: data}, size,
		checkName("the cluster's name", cluster), checkName("the document's name", name))
}

// Open says how a resource is kept. It must come before the first change of a resource since the Disk was opened. It
// drops the resource's data if that was written with another fingerprint, sealed differently or with another key. The
// error, which does not affect the batch, says that the resource cannot be kept.
func (b *Batch) Open(res Resource, o ResourceOptions) error {
	if err := checkResource(res); err != nil {
		return err
	}
	if o.Sealed && b.disk.opts.Key == nil {
		return fmt.Errorf("keep %s: it is sealed and there is no key; give a key file, or leave the resource out", res)
	}
	b.add(op{kind: opOpen, res: res, opts: o})
	return nil
}

// Put stores a state of an object, which becomes its newest one.
func (b *Batch) Put(res Resource, s State) {
	b.add(op{kind: opPut, res: res, state: s}, checkKey(s.Key))
}

// Delete stores that an object was deleted. An object that is not stored is ignored.
func (b *Batch) Delete(res Resource, key object.Key, version object.Version, at time.Time) {
	b.add(op{kind: opDelete, res: res, state: State{Key: key, Version: version, Time: at}}, checkKey(key))
}

// Gap stores that changes between two times were not seen.
func (b *Batch) Gap(res Resource, from, to time.Time) {
	b.add(op{kind: opGap, res: res, state: State{Time: from}, to: to})
}

// Reach stores that the disk has the resource's state of the version, and that the resource was watched until then. The
// first Reach is where its history begins.
func (b *Batch) Reach(res Resource, version object.Version, at time.Time) {
	b.add(op{kind: opReach, res: res, state: State{Version: version, Time: at}})
}

// SetMeta stores a small value under a name. nil deletes it. The batch keeps data. Names that begin with ClusterMeta
// are dropped with the cluster.
func (b *Batch) SetMeta(name string, data []byte) {
	b.add(op{kind: opMeta, name: name, data: data}, checkName("the value's name", name))
}

// Commit writes the batch. When it returns nil, the batch is durable. When it returns an error, nothing of the batch
// was acknowledged: after a restart, all of it may be there or nothing. The batch is empty then and can be used again.
func (b *Batch) Commit() error {
	ops, err := b.ops, b.err
	b.ops, b.err = nil, nil
	if err != nil {
		return fmt.Errorf("write to the data folder: %w", err)
	}
	return b.disk.commit(ops)
}
