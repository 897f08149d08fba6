// Package informertest provides an in-memory API server and a simulator for tests of informers. Package kit, below it,
// has the conformance kit.
//
// # The server
//
// A Server holds objects and their history and answers HTTP as a Kubernetes API server does: get, list (pages at a
// fixed version, resourceVersion and resourceVersionMatch), watch (bookmarks, timeouts, sendInitialEvents), create,
// update, status, delete, selectors, discovery; in JSON, protobuf and as PartialObjectMetadata. Serve serves it on a
// socket, Pipe over in-memory connections that work with fake time; both return a rest.Config.
//
// It guarantees:
//
//   - All resources share one sequence of decimal versions, as in etcd.
//   - The same writes give the same versions, UIDs and names in every run.
//   - All pages of a list have one version. A watch sends every change after its version, in order, or an error that
//     the version has expired.
//   - Faults happen only on request: Inject, Compact, Restore, Stall, CutWatches and Unregister cause them, and
//     Requests returns what clients requested.
//   - It starts no goroutine. Requests wait only on channels, conditions and timers, so that testing/synctest knows
//     when they are blocked.
//
// It does not implement admission, validation of objects, defaults, patches, tables, graceful deletion of pods or
// authentication. Namespaces need not exist. A watch that cannot be served gets an ERROR event, as from the API
// server's watch cache; a version that is too large is refused at once, without waiting three seconds for it.
//
// # The simulator
//
// Simulate runs an informer, given as a Simulated, through seeds. Each seed is a plan of writes, of faults on the wire
// and in the server, of handlers that are slow, block, panic, and are added and removed, and of restarts, also from
// saved states that lack the last changes. The promises P1–P14 are checked against a model of everything that was
// written, over restarts as clients see them that know what they have seen. An informer that is also a Stepper runs one step at a time
// in an order that the seed decides, so that every run of a seed is the same. A failed seed is shrunk to the shortest
// history that shows the failure. Survey only counts broken promises, for informers that make other promises.
package informertest
