// Package source defines where objects come from: the contract between a source of
// objects (an API server, a file, a test) and the reflector that reads it.
//
// A Source has two methods to read from it:
//
//   - List streams the state at one version, page by page.
//   - Watch streams the changes after a version. If the source supports it, Watch
//     streams the state first (WatchOptions.InitialState), completed by a bookmark.
//
// The reader pulls from both: Read blocks until there is something, and then returns
// everything that is available without blocking again. A burst of changes becomes one
// batch, and no goroutine or channel is needed in between.
//
// An implementation must keep these promises:
//
//   - Every item has its key and version, and its UID if the object has one.
//   - All pages of a list are at one version. If that is not possible, Read fails with
//     Expired.
//   - Changes are in the order in which they happened and complete from the requested
//     version on. If that is not possible, Watch or Read fails with Expired.
//   - An object that cannot be decoded neither ends the stream nor is left out: a list
//     returns it as an item whose Decode fails, a watch as a Change of type
//     Undecodable, each with the parts of its name that could be read. It must not
//     look deleted.
//   - Cancelling the context makes a blocked call return promptly.
//   - Errors are classified: errors.As finds an *Error whose Reason says what to do.
//     An unclassified error counts as Unavailable.
package source
