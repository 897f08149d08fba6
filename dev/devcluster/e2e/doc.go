// Package e2e tests the devcluster binary as its users see it: each test runs the real program and checks a real
// cluster. The binary is $DEVCLUSTER or bin/devcluster at the root of the repository; `make devcluster` builds it.
package e2e
