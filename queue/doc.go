// Package queue provides DeltaFIFO, a queue that groups changes by object: popping a key returns all changes of that
// object since it was queued, oldest first. It is the queue of the classic informer, for programs that build one by
// hand. The informers of this module have their own queue.
//
// Promises of DeltaFIFO:
//
//   - Keys are popped in the order in which they were first queued. The deltas of a key
//     keep their order.
//   - Two consecutive Deleted deltas become one. One that was observed takes precedence
//     over one that was inferred from a list.
//   - The delete of an object that is neither queued nor known is ignored.
//   - Replace is atomic: a call that returns an error has changed nothing. The same
//     holds for Add, Update and Delete.
//   - HasSynced becomes true, and stays true, when everything that the first Replace
//     queued was popped, or when anything else was queued before it.
//   - While Pop runs its callback, no other call changes the queue, so the callback can
//     update the known objects consistently. The callback must not call the queue.
//   - Nothing is dropped to save memory: the queue grows as long as changes are added faster than they are popped.
//
// All methods are safe for concurrent use.
package queue
