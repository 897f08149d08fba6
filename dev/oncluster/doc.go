// Package oncluster holds the tests of the whole pipeline, from the wire to the
// handlers, on a real API server that is paused, killed, restarted and compacted
// under it. They are apart from the informer's own tests, which need nothing but
// Go and take seconds.
package oncluster
