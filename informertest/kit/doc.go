// Package kit holds informers to the promises of this project.
//
// Conformance runs an informer, given as a Subject, through one subtest for each promise, against informertest's
// server on pipes and in fake time, so that hours of faults pass in moments. What an informer does not keep is listed
// as Broken, and the kit checks that too: it fails when a promise that is listed has come to hold. client-go's own
// informer is run through it in this package's tests; its list shows what the promises are worth.
package kit
