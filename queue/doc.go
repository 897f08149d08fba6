// Package queue holds what a source has said until the store has heard it. It
// has two queues for two kinds of consumer.
//
// [DeltaFIFO] groups by object: whoever pops a key gets everything that
// happened to that object while it waited, oldest first. It is the queue of the
// classic informer and of anybody who builds one by hand.
//
// [Batches] keeps the order of arrival over all objects and hands out many
// deltas at a time. It is the queue of this module's informers, and it is
// bounded.
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
// What Batches promises:
//
//   - Below the bound in bytes every delta comes out as it went in.
//   - Beyond the bound a list waits for the consumer, and a watch does not: its
//     deltas are coalesced to the latest one of each key. A delta never moves
//     across the beginning, the end or the abort of a list, and the deltas of a
//     key never change their order, so whoever applies what comes out ends in
//     the same state as if he had applied what went in.
//   - A coalesced delta stands where the earlier one stood, ahead of what other keys
//     did in between. Its Through says how far history is complete all the same, and
//     a bookmark at the end vouches for the rest: nobody who goes by Through claims
//     a version before everything up to it was taken.
//   - A consumer that has stalled costs at most the bound, one delta beyond it,
//     and one delta for each key that changed since.
//   - Filling and emptying the queue allocates nothing once it has its size, and
//     after a burst or a list the memory is given back.
//
// All methods of both may be called from any goroutine, except that Batches has
// one producer and one consumer.
package queue
