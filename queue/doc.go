// Package queue has DeltaFIFO, which groups by object: whoever pops a key gets everything that happened to that
// object while it waited, oldest first. It is the queue of the classic informer, for programs that build one by hand.
// The informers of this module have a queue of their own.
//
// What DeltaFIFO promises:
//
//   - Keys are popped in the order in which they were first queued; the deltas
//     of a key stay in the order in which they came.
//   - Two Deleted in a row become one. The one that was seen wins over the one
//     that was only inferred from a list.
//   - The delete of an object that is neither queued nor known is ignored.
//   - Replace is all or nothing: a call that returns an error has changed
//     nothing. The same holds for Add, Update and Delete.
//   - HasSynced turns true, once and for all, when everything that the first
//     Replace brought was popped, or when anything else was queued before it.
//   - While Pop runs its callback no other call changes the queue, so the
//     callback may keep the known objects in step with it. The callback must not
//     call the queue itself.
//   - Nothing is thrown away to save memory; Depth says how much waits.
//
// All methods may be called from any goroutine.
package queue
