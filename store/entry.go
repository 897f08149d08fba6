package store

import (
	"sync/atomic"
	"unsafe"

	"github.com/mirador-k8s/mirador/internal/share"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store/internal/pack"
)

// Entry is one stored object and what is known of it. It never changes once it is
// stored, and may be held by anybody for as long as they like.
type Entry[T any] struct {
	Key object.Key

	// What is read of an entry lies beside the key: one line of the processor's cache.
	obj   T         // unless it is packed
	extra *extra[T] // where it is packed or under guard

	Version object.Version
	// UID tells the object from a later one of the same key; "" means unknown.
	UID string
	// Size is the object's encoded length or an estimate. The log is bounded by it.
	Size int
}

// extra is what an entry has that is packed or under guard.
type extra[T any] struct {
	home   *home[T]                  // reads it
	ref    pack.Ref                  // of the packed data
	line   string                    // key, UID and version, which are parts of it, and the packed data
	recent atomic.Pointer[recent[T]] // what was decoded a moment ago, as long as the read cache knows it
}

// packed reports whether the object is.
func (e *Entry[T]) packed() bool { return e.extra != nil && e.extra.home.codec != nil }

// newEntry makes an entry that is in no store.
func newEntry[T any](it object.Item[T]) *Entry[T] {
	e := new(Entry[T])
	e.fill(&it)
	return e
}

func (e *Entry[T]) fill(it *object.Item[T]) {
	e.Key, e.Version, e.UID, e.Size, e.obj = it.Key, it.Version, it.UID, it.Size, it.Value
}

// Object gives the object. In the packed layout it is decoded first, unless it was
// read, or written, a moment ago.
func (e *Entry[T]) Object() T {
	if e.extra == nil {
		return e.obj
	}
	return e.extra.home.object(e, "")
}

// AppendEncoded appends the object's encoded bytes to dst where the store has them,
// as the packed layout does; ok is false where it has not.
func (e *Entry[T]) AppendEncoded(dst []byte) (encoded []byte, ok bool) {
	if e.extra == nil {
		return dst, false
	}
	return e.extra.home.encoded(e, dst)
}

// item returns the item of an entry.
func (e *Entry[T]) item() object.Item[T] {
	return object.Item[T]{Key: e.Key, Version: e.Version, UID: e.UID, Size: e.Size, Value: e.Object()}
}

// record is an Entry in the store. The other fields belong to the writer and are
// read by nobody else.
type record[T any] struct {
	Entry[T]
	slot uint32 // its place in the vector of objects; while staged, in the list
	mark uint32 // the last replace that saw it
	refs refs   // its index values, in the order of the indexes; moved on by an update
}

// packedRecord is a record with what a packed one needs besides, in one allocation.
type packedRecord[T any] struct {
	record[T]
	inside extra[T]
}

// sharedRecord is a record of the shared layout, with what its object has in common with
// others. The object is not asked for that again: handlers have it by then.
type sharedRecord[T any] struct {
	record[T]
	uses share.Uses
}

// sharedUses returns the uses of a record that is part of a sharedRecord.
func (r *record[T]) sharedUses() share.Uses {
	return *(*share.Uses)(unsafe.Add(unsafe.Pointer(r), unsafe.Offsetof(sharedRecord[T]{}.uses)))
}

// sharedUses counts the offset from the record.
const _ = -unsafe.Offsetof(sharedRecord[int]{}.record)

// seat is a record's place in the vector of objects. The object is there too, if it can
// be read from the entry as it is: to walk over all objects of a store without it meant to
// fetch each record, 7 ns an object instead of 1.
type seat[T any] struct {
	rec *record[T]
	obj T
}

func seatOf[T any](rec *record[T]) seat[T] {
	if rec.extra != nil {
		return seat[T]{rec: rec}
	}
	return seat[T]{rec, rec.obj}
}

// ref says that an object stands at a place in a bucket.
type ref struct {
	h     *handle
	pos   uint32
	index uint32
}

// refs are the places of one object. Most objects have two at most, a namespace and a node: these lie in the record,
// and an update finds them without fetching anything else.
type refs struct {
	few  [2]ref // without a handle: not used
	more *[]ref
}

func (r *refs) len() int {
	switch {
	case r.few[0].h == nil:
		return 0
	case r.few[1].h == nil:
		return 1
	case r.more == nil:
		return 2
	}
	return 2 + len(*r.more)
}

func (r *refs) at(i int) *ref {
	if i < len(r.few) {
		return &r.few[i]
	}
	return &(*r.more)[i-len(r.few)]
}

func (r *refs) add(x ref) {
	n := r.len()
	if n >= len(r.few) {
		if r.more == nil {
			r.more = new([]ref)
		}
		*r.more = append(*r.more, x)
		return
	}
	r.few[n] = x
}

// handle is a bucket's identity, which stays while snapshots make the writer copy
// the bucket itself.
type handle struct {
	value string
	hash  uint64
	cur   *bucket // the writer's state of it
	visit uint64  // scratch of reindex
	at    int     // scratch of reindex
}

// bucket is the set of slots under one value of one index.
type bucket struct {
	owner uint64
	h     *handle
	slots vec[uint32]
}

// untouched gives the entry of a record that is there. The compiler makes sure that whatever a field is taken from is
// not nil, by reading it; here that would fetch every record that a walk passes: 7 ns an object instead of 1.
func (r *record[T]) untouched() *Entry[T] { return (*Entry[T])(unsafe.Pointer(r)) }

// The entry must be where its record is.
const _ = -unsafe.Offsetof(record[int]{}.Entry)

// entry gives the record's entry, or nil for no record.
func (r *record[T]) entry() *Entry[T] {
	if r == nil {
		return nil
	}
	return &r.Entry
}
