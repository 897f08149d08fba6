// Package clients tests the daemon with the clients that people use: k9s in a real terminal, a kubectl of Kubernetes
// 1.28 and today's kubectl. Each runs against a daemon that mirrors two real clusters, eu and us, and what it shows is
// compared with what the same client shows of the clusters themselves. It is a separate module, so that the terminal
// emulator stays out of the library's go.mod. make clients builds the programs and runs the tests.
package clients
