package store

import (
	"sync/atomic"
	"unsafe"

	"github.com/mirador-k8s/mirador/internal/share"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store/internal/pack"
)

// Entry is one stored object with its key and version. It never changes once it is stored, and may be kept by any code
// for any time.
type Entry[T any] struct {
	Key object.Key

	// The fields that reads need are next to the key, in the same cache line.
	obj   T         // unless it is packed
	extra *extra[T] // if it is packed or guarded

	Version object.Version
	// UID distinguishes the object from a later one with the same key; "" means unknown.
	UID string
	// Size is the object's encoded length or an estimate. The log is bounded by it.
	Size int
}

// extra is the part of an entry that only packed and guarded entries have.
type extra[T any] struct {
	reader *entryReader[T]
	ref    pack.Ref                  // of the packed data
	line   string                    // key, UID, version and packed data; the entry's own strings are parts of it
	recent atomic.Pointer[recent[T]] // the decoded object while it is in the read cache
}

// packed reports whether the object is packed.
func (e *Entry[T]) packed() bool { return e.extra != nil && e.extra.reader.codec != nil }

// newEntry makes an entry that is in no store.
func newEntry[T any](it object.Item[T]) *Entry[T] {
	e := new(Entry[T])
	e.fill(&it)
	return e
}

func (e *Entry[T]) fill(it *object.Item[T]) {
	e.Key, e.Version, e.UID, e.Size, e.obj = it.Key, it.Version, it.UID, it.Size, it.Value
}

// Object returns the object. In the packed layout it is decoded first, unless it was read or written recently.
func (e *Entry[T]) Object() T {
	if e.extra == nil {
		return e.obj
	}
	return e.extra.reader.object(e, "")
}

// AppendEncoded appends the object's encoded bytes to dst. ok is false if the store does not have them: only the
// packed layout does.
func (e *Entry[T]) AppendEncoded(dst []byte) (encoded []byte, ok bool) {
	if e.extra == nil {
		return dst, false
	}
	return e.extra.reader.encoded(e, dst)
}

// item returns the item of an entry.
func (e *Entry[T]) item() object.Item[T] {
	return object.Item[T]{Key: e.Key, Version: e.Version, UID: e.UID, Size: e.Size, Value: e.Object()}
}

// record is an Entry in the store. Only the writer reads and writes the other fields.
type record[T any] struct {
	Entry[T]
	slot uint32 // position in the vector of objects; while staged, in the list
	mark uint32 // the last list that had the object
	refs refs   // positions in index buckets, in the order of the indexes; an update moves them to the new record
}

// packedRecord is the record of a packed object, in one allocation with its extra.
type packedRecord[T any] struct {
	record[T]
	inside extra[T]
}

// sharedRecord is a record of the shared layout, with the parts that its object shares with others. The object itself
// is not read for that, since handlers may have written to it by mistake.
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

// slotValue is the value of a slot in the vector of objects. The object is there too if it can be read from the entry
// as it is, so that a walk over all objects does not load each record.
type slotValue[T any] struct {
	rec *record[T]
	obj T
}

func slotValueOf[T any](rec *record[T]) slotValue[T] {
	if rec.extra != nil {
		return slotValue[T]{rec: rec}
	}
	return slotValue[T]{rec, rec.obj}
}

// ref is the position of an object in a bucket.
type ref struct {
	h     *handle
	pos   uint32
	index uint32
}

// refs are the positions of one object. Most objects have at most two, for a namespace and a node: these are in the
// record, so that an update needs no other memory.
type refs struct {
	few  [2]ref // unused if the handle is nil
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

// handle identifies a bucket. It stays the same while the writer copies the bucket because snapshots share it.
type handle struct {
	value string
	hash  uint64
	cur   *bucket // the writer's copy
	visit uint64  // scratch of reindex
	at    int     // scratch of reindex
}

// bucket is the set of slots under one value of one index.
type bucket struct {
	owner uint64
	h     *handle
	slots vec[uint32]
}

// entryWithoutLoad returns the entry of a record that is not nil. For &r.Entry the compiler loads the record to check
// that r is not nil, and a walk over all entries would load every record.
func (r *record[T]) entryWithoutLoad() *Entry[T] { return (*Entry[T])(unsafe.Pointer(r)) }

// The entry must be at the beginning of its record.
const _ = -unsafe.Offsetof(record[int]{}.Entry)

// entry returns the record's entry, or nil if r is nil.
func (r *record[T]) entry() *Entry[T] {
	if r == nil {
		return nil
	}
	return &r.Entry
}
