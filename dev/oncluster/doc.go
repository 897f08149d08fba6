// Package oncluster has the tests of the whole pipeline, from the wire to the handlers, on a real API server that is
// paused, killed, restarted and compacted meanwhile. They are separate from the informer's own tests, which need no
// cluster and take seconds.
package oncluster
