// Devcluster runs a real Kubernetes control plane on this machine in one
// command and without containers: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler and KWOK's fake nodes, all of them
// built into this one binary, each in a process of its own.
//
//	devcluster up                        start a cluster and keep it until Ctrl-C
//	devcluster kubectl get pods -A       kubectl, built in
//	devcluster load --pods 1000          fill it with realistic pods
//	devcluster fault dev pause apiserver break it
//	devcluster list                      what is running
//	devcluster down dev                  stop it
//
// Everything listens on the loopback address or on unix sockets in a private
// folder, with an authority and certificates of its own. When the supervisor
// ends, in whatever way, nothing is left running. Errors are one line on
// standard error; the exit status is 2 if what was asked for cannot be (a bad
// flag, a name that is taken, a folder that cannot be written) and 1 if it
// failed on the way.
package main
