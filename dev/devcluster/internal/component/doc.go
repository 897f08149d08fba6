// Package component is the program of one child process: etcd, the API server, the controller manager, the scheduler
// or KWOK, each run exactly as its own binary would run it.
//
// The supervisor starts its own executable again with the arguments that part.Name.Command returns; main passes them
// to [Run]. A component ends when the pipe on file descriptor 3 closes, which happens whenever and however the
// supervisor ends.
package component
