package main

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

const (
	// readCheckEvery is how often it is looked at whether the clusters have been read.
	readCheckEvery = 5 * time.Second
	// readAtMost is how long that is waited for.
	readAtMost = 10 * time.Minute
)

// releaseStartMemory returns to the operating system what only the start has needed, once. A heap that many clusters
// fill at the same time becomes much larger than what remains of it, and the runtime would keep that for later.
func releaseStartMemory(ctx context.Context, clusters func() []*fleet.Cluster) {
	tick := time.NewTicker(readCheckEvery)
	defer tick.Stop()
	for late := time.Now().Add(readAtMost); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if allRead(clusters()) || time.Now().After(late) {
				debug.FreeOSMemory()
				return
			}
		}
	}
}

// allRead reports whether all clusters that can be reached have been read.
func allRead(clusters []*fleet.Cluster) bool {
	for _, c := range clusters {
		if h := c.Health(); !h.Complete && h.State != fleet.Unreachable {
			return false
		}
	}
	return true
}
