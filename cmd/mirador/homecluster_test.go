package main

import (
	"testing"

	"github.com/mirador-k8s/mirador/daemon/access"
	"github.com/mirador-k8s/mirador/daemon/identity"
)

// The cluster that authenticated a user is passed from one package to the other under one name: otherwise a service
// account of one cluster would have the rights of its namesake in another.
func TestTheClusterOfAUserHasOneName(t *testing.T) {
	if identity.ClusterExtra != access.HomeCluster {
		t.Errorf("identity says %q, access %q", identity.ClusterExtra, access.HomeCluster)
	}
}
