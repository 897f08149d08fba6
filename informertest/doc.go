// Package informertest has what tests of informers need: an API server in memory and a simulator. The conformance kit
// is in package kit below it.
//
// # The server
//
// A Server holds objects and their history and answers HTTP as a Kubernetes API
// server does: get, list (pages on a fixed version, resourceVersion and
// resourceVersionMatch), watch (bookmarks, timeouts, sendInitialEvents), create,
// update, status, delete, selectors, discovery; in JSON, protobuf and as
// PartialObjectMetadata. Serve puts it on a socket, Pipe on connections in memory
// on which time can be fake; both give a rest.Config.
//
// What it promises:
//
//   - One sequence of decimal versions over all resources, as etcd has it.
//   - The same writes give the same versions, UIDs and names in every run.
//   - A list is of one version, over all its pages. A watch tells every change
//     after its version, in order, or says that it has expired.
//   - Nothing goes wrong by itself: Inject, Compact, Restore, Stall, CutWatches
//     and Unregister make it go wrong, and Requests tells what was asked.
//   - It starts no goroutine. Everything that a request waits for is a channel, a
//     condition or a timer, so that testing/synctest can see it wait.
//
// What it leaves out: admission, validation of objects, defaults, patches,
// tables, graceful deletion of pods, authentication. Namespaces need not exist.
// A watch that cannot be served is told so by an ERROR event, as the API server's
// watch cache does; a version that is too large is refused at once, without the
// three seconds of hope.
//
// # The simulator
//
// Simulate runs an informer, given as a Simulated, through seeds. Each is a plan of
// writes, faults on the wire and in the server, and handlers that are slow, block,
// panic, come and go; what the informer does is held to the promises P1–P14 against a
// model of everything that was written. One that is a Stepper runs one step at a time
// in an order that the seed decides, and so every run of a seed is the same. A seed that
// fails is shrunk to the shortest history that shows it. Survey only counts, for
// informers that make other promises.
package informertest
