// Package fanout delivers one stream of events to many handlers, each isolated
// from the others.
//
// A publisher appends batches of events with increasing sequence numbers. The
// batches form one chain that all handlers share. Each handler has its own
// position in the chain and reads at its own pace; a batch is garbage once the
// last handler has passed it. Handlers that have events to deliver wait in a
// queue, and runners, goroutines that exist only while the queue is not empty,
// call them. The file runners.go explains how handlers are scheduled.
//
// Promises:
//
//   - P3, one order: Every handler is called with one event at a time, in the order
//     of the stream. Old is always the state that this handler saw last.
//   - P5, the state first: A handler that joins late receives the current state as
//     Added events marked Initial, then everything that happened after that state,
//     without gaps or duplicates. Nothing else waits for it. It counts as synced when
//     the publisher has marked the initial state as complete and the handler has
//     received all of it.
//   - P7, isolation: Publish never waits for a handler, and no handler waits for
//     another. A panic is caught, counted and reported, and the handler continues with
//     the next event. The same holds for a callback that calls runtime.Goexit. A runner
//     calls several handlers on one goroutine, so a callback that locks the goroutine
//     to its thread must unlock it again.
//   - P7, a bounded backlog: If more than MaxBacklog events wait for a handler, they are
//     coalesced to the latest state of each key until the handler has caught up. The
//     handler then sees a subsequence of each object's states. Objects are delivered in
//     the order in which they began to wait, so that an object that changes all the time
//     is delivered too. An object that the handler knows and that was deleted is
//     announced as deleted once; one that was replaced by another of the same name is
//     deleted and added (P6); one that was added and deleted in the meantime is not
//     mentioned. The batch that a handler is processing, or is about to begin, does not
//     count towards the backlog.
//   - P9, stop: No callback begins after Remove. Done is closed when the last callback
//     has returned. Stop waits for all of them and names those that do not return.
//
// Costs: Publish allocates one small node per batch, whatever the number of handlers,
// performs a few atomic operations per handler, and starts at most one goroutine. That
// goroutine starts at most one more as long as callbacks return quickly. An idle handler
// needs no goroutine and keeps no batch alive.
package fanout
