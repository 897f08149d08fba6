package store

import "github.com/mirador-k8s/mirador/object"

// Entry is one stored object and what is known of it.
type Entry[T any] struct {
	Key     object.Key
	Version object.Version
	// UID tells the object from a later one of the same key; "" means unknown.
	UID string
	// Size is the object's encoded length or an estimate. The log is bounded by it.
	Size   int
	Object T
}

// record is an Entry in the store. The entry never changes once it is stored; the
// other fields belong to the writer and are read by nobody else.
type record[T any] struct {
	Entry[T]
	slot uint32 // its place in the vector of objects; while staged, in the list
	mark uint32 // the last replace that saw it
	refs []ref  // its index values, in the order of the indexes; moved on by an update
}

// ref says that an object stands at a place in a bucket.
type ref struct {
	h     *handle
	pos   uint32
	index uint32
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

// entry gives the record's entry, or nil for no record.
func (r *record[T]) entry() *Entry[T] {
	if r == nil {
		return nil
	}
	return &r.Entry
}
