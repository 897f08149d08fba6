// Package kit checks informers against the promises of this project.
//
// Conformance runs an informer, given as a Subject, through subtests for each promise, against informertest's server
// over pipes and in fake time, so that hours of faults take moments. Promises that an informer does not keep are
// listed as Broken, and the kit checks the list too: it fails when a listed promise holds. The tests of this package
// run client-go's own informer; its list shows how the two differ.
package kit
