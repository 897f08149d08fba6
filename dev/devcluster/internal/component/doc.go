// Package component is the inside of one child process: etcd, the API server,
// the controller manager, the scheduler or KWOK, each run exactly as its own
// binary would run it.
//
// The supervisor starts its own executable again with the arguments that
// part.Name.Command gives; main hands them to [Run]. A component promises to end when
// the pipe on file descriptor 3 closes, that is, when the supervisor is gone,
// however it went.
package component
