// Package store keeps objects of any type by key, with indexes, and returns snapshots of them. It does not depend on
// Kubernetes.
//
// A Writer, used by one goroutine, changes the store in batches or replaces its contents by a list. A Reader, used by
// any number of goroutines, reads it. A Snapshot is the store at one commit.
//
// What it promises:
//
//   - A snapshot is consistent (P8). Its objects, indexes, version and sequence number belong to one batch and never
//     change. Snapshots show a batch as a whole, from the moment at which Commit or CommitReplace returns (P4).
//
//   - Readers never make the writer wait, whatever they do and however long they hold a snapshot. A reader waits in
//     one case only: it asks for a snapshot during a batch, and no reader has taken one of the state before that
//     batch. Then it waits for Commit. No reader waits for CommitReplace, or for AddIndexes outside a batch. While a
//     batch is open, Snapshot yields the processor once, so that readers in a loop leave the writer its share.
//
//   - Reader.Get takes no lock and allocates nothing. It shows each write at once: its result may be newer than the
//     newest snapshot, but never older.
//
//   - A snapshot costs the same whatever the size of the store, and nothing if no reader asks for it. After a snapshot
//     was taken, the writer copies each small node once before it edits it.
//
//   - Nothing is kept longer than necessary. A deleted object is released with the last snapshot and log entry that
//     has it, an index value with its last object, and everything by Reset.
//
//   - A list is one transaction. Objects whose version did not change stay in place and cost no memory; objects that
//     are not in the list are deleted; the peak of memory is the final state plus what changed.
//
//   - If an index function fails, the object is stored, is left out of that index, and the failure is reported (P12).
//     An update never computes the index values of the old object.
//
//   - The log of changes is bounded by bytes and by age. Since returns all changes after a version, or ErrGone.
//
//   - Every layout returns exactly what was stored (P15). An object that its codec cannot restore exactly is kept
//     live, counted and reported.
//
// Objects belong to the store once they were passed to it, and are read-only for all code. In tests, Options.OnWritten
// reports code that writes to one.
//
// # Layouts
//
// Live keeps objects as they are. Shared stores equal parts of different objects once (internal/share): reads cost
// nothing more, and a write costs about as much as decoding the object did. Packed keeps each object encoded, as its
// difference to a similar one (store/internal/pack), in one allocation with its key, UID and version. It decodes an
// object when it is read, unless the object was read or written recently. Index values are stored separately in every
// layout, so that finding objects decodes none. ByNamespace takes its values from the keys, so that adding that index
// decodes none either.
//
// Versions order the log. An object without a version, or with one that is older than the store's, is stored all the
// same; its change counts as part of the version that the store has, so Since of that version does not return it.
//
// # How it works
//
// Objects are in slots without gaps. The slots, and the set of slots under each value of an index, are persistent
// vectors; the values of an index are a persistent hash trie. Every node carries the epoch in which it was made, and
// the writer edits nodes of the current epoch in place. At the end of a batch the writer publishes a snapshot, which
// is little more than the roots. If a reader takes it, by one atomic swap, the next batch begins a new epoch; if none
// does, the writer reclaims the snapshot and continues in place. Point reads use a hash table: where T is a pointer
// type its cells hold the objects, and each cell belongs to one key for the lifetime of the table.
package store
