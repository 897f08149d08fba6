// Package fanout delivers one stream of events to many handlers, each isolated
// from the others.
//
// A publisher hands over batches of events, numbered by a sequence that grows.
// They form one chain that all handlers share; each handler has its own place in
// it and reads at its own pace. A batch is garbage when the last handler has
// passed it. Handlers that have events to deliver are in a queue, and runners,
// goroutines that exist only while that queue is not empty, call one after the
// other.
//
// What it promises:
//
//   - One order. Every handler is called with one event at a time, in the order
//     of the stream (P3). Old is always what that handler saw last.
//   - The state first. A handler that joins late is given the state as Adds
//     marked Initial, then what happened after that state, nothing twice and
//     nothing left out, and nobody waits for it. It counts as synced when the
//     publisher has marked the initial state complete and all of it was
//     delivered (P5).
//   - Isolation. Publish never waits for a handler, and no handler waits for
//     another: while any is queued, a runner that is in no callback is about to
//     take it. A panic is caught, counted and reported, and the handler
//     goes on with the next event; so does one that ends its goroutine (P7). A
//     goroutine calls other handlers too, so a callback must leave it as it found
//     it: who locks it to its thread unlocks it.
//   - A bound. When more than MaxBacklog events wait for a handler, they are
//     coalesced to the latest state of each key until the handler has caught up.
//     What it then sees of each object is a subsequence, and the objects come in the
//     order in which they began to wait: an object that changes all the time would
//     otherwise never have its turn. An object it knows and that is gone is
//     deleted once, an object replaced by another of the same name is deleted and
//     added (P6), an object that came and went unseen is not mentioned. The batch
//     that a handler is busy with, or is about to begin, does not count.
//   - Stop means stop. After Remove no callback begins; Done tells when the last
//     one has returned. Stop waits for all of them and names those that do not
//     return (P9).
//
// What it costs: Publish allocates one small node for a batch, whatever the
// number of handlers, does a few atomic operations for each handler, and starts at
// most one goroutine. That one starts at most one more while callbacks are quick. An
// idle handler holds no goroutine and pins no batch.
package fanout
