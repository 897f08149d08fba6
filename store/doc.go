// Package store keeps objects of any type by key, with indexes, and hands out
// snapshots of them. It is the mirror's memory and knows nothing of Kubernetes.
//
// A Writer, used by one goroutine, changes it in batches or replaces all of it by a
// list. A Reader, used by any number of goroutines, reads it. A Snapshot is the store
// at one moment.
//
// What it promises:
//
//   - One moment (P8). The objects, every index, the version and the sequence number
//     of a snapshot belong to one batch and never change. A batch shows in
//     snapshots as a whole, when Commit or CommitReplace has returned, and from then
//     on in every snapshot that is asked for (P4).
//
//   - Readers never make the writer wait, whatever they do and for however long they
//     hold a snapshot. A reader waits in one case only: it asks for a snapshot
//     inside a batch while nobody has the state before that batch, and then until
//     that batch's Commit. Nobody waits for a CommitReplace or an AddIndexes outside a batch.
//     Beside a batch that is open, asking for a snapshot yields the processor once, so that readers
//     who never pause do not leave the writer the smallest share of it.
//
//   - Get of a Reader takes no lock and allocates nothing. It shows each write at
//     once: it may be ahead of the newest snapshot, never behind it.
//
//   - A snapshot costs the same whatever the size of the store, and nothing if nobody asks
//     for it. After one was taken, the writer copies each small node that it edits
//     once.
//
//   - Nothing is kept longer than asked: a deleted object is released when the last
//     snapshot and the log let go of it, an index value with its last object,
//     and everything by Reset.
//
//   - A list is one transaction. Objects whose version did not change keep their place
//     and cost no memory; what the list did not have is deleted; the peak is the
//     final state and what changed.
//
//   - A failing index function costs the object its place in that index, and nothing
//     else, and is reported (P12). An update never computes the values of the old object again.
//
//   - The log of changes is bounded by bytes and by age. Since replays it completely
//     or says ErrGone; it never leaves out a change in between.
//
//   - Every layout gives back exactly what was put in (P15). What cannot come back from its
//     encoding as it was is kept live, counted and reported.
//
// Objects belong to the store once they were given to it, and are read-only for all.
// Options.OnWritten, in tests, names whoever writes to one.
//
// # Layouts
//
// Live keeps objects as they are. Shared lets equal parts of different objects be one
// (internal/share): a read costs nothing more, a write about as much as decoding
// the object did. Packed keeps each object encoded, as its difference to one like it
// (store/internal/pack), in one allocation with its key, uid and version, and decodes it
// when it is read, unless it was read or written a moment ago. Index values are kept beside it
// in any layout, so that finding objects decodes none. An index by namespace is made of the
// keys (ByNamespace), so that adding one decodes none either.
//
// Versions order the log. Objects without a version, or with one that is older than
// the store's, are stored all the same, but such a change counts to the version
// that the store was at, so Since of that version does not show it.
//
// # How it works
//
// Objects lie in slots without holes. The slots, and the set of slots under each value
// of an index, are persistent vectors; the values of an index are a persistent
// hash trie. Every node is known to be of the epoch in which it was made, and the writer edits
// nodes of the current epoch in place. At the end of a batch the writer offers a
// snapshot, which is little more than the roots. If a reader takes it, one atomic swap,
// the next batch begins a new epoch; if none does, the writer withdraws the offer and
// goes on in place. Beside that, a hash table answers point reads: its cells have the
// objects in them where T is a pointer or any, and each belongs to one key for as long as
// the table lives.
package store
