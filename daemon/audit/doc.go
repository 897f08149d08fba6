// Package audit writes audit events to a file, in the format of kube-apiserver's audit log: a JSON object of
// audit.k8s.io/v1 on each line.
//
// A Log never blocks the code that records an event. Events wait in a queue of bounded size for the one goroutine that
// writes them. If the disk is too slow or full, events are dropped, counted and mentioned in the daemon's log.
package audit
