// Package source says where objects come from: the contract between whoever
// holds the state (an API server, a file, a test) and the reflector that
// mirrors it.
//
// A Source gives its state in one of two ways, and its changes in one:
//
//   - List streams the state as of one version, page by page.
//   - Watch streams the changes after a version, and, where the source can, the
//     state first (WatchOptions.InitialState), closed by a bookmark.
//
// Both are read by pulling: Read blocks until there is something, then returns
// all that can be had without blocking again, so that a burst travels as one
// batch and nobody needs a goroutine or a channel in between.
//
// What an implementation promises:
//
//   - Every item carries its key and version, and its UID where there is one.
//   - A list is as of one version, over all its pages; if that cannot be kept
//     up, Read fails with Expired.
//   - Changes come in the order in which they happened, none left out, from the
//     version asked for; if they cannot, Watch or Read fails with Expired.
//   - An object that cannot be decoded ends no stream and is not passed over: a
//     list gives it as an item whose Decode fails, a watch as a Change of type
//     Undecodable, each with as much of its name as could be read. It is there; that
//     it cannot be read must not make it look deleted.
//   - Cancelling the context makes a blocked call return promptly.
//   - Errors are classified: errors.As finds an *Error whose Reason says what to
//     do about it. An unclassified error counts as Unavailable.
package source
