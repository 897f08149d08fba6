package main

import (
	"context"
	"log/slog"
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

// afterStart waits until all clusters that can be reached have been read, and says so. Then it returns to the operating
// system what only the start has needed, once. A heap that many clusters fill at the same time becomes much larger than
// what remains of it, and the runtime would keep that for later.
func afterStart(ctx context.Context, clusters func() []*fleet.Cluster, unused func() []string, log *slog.Logger) {
	tick := time.NewTicker(readCheckEvery)
	defer tick.Stop()
	for began := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			read := allRead(clusters())
			if read {
				logRead(clusters(), unused, time.Since(began), log)
			}
			if read || time.Since(began) > readAtMost {
				debug.FreeOSMemory()
				return
			}
		}
	}
}

// logRead says that the clusters have been read, and which patterns of --include have selected nothing in them.
func logRead(clusters []*fleet.Cluster, unused func() []string, took time.Duration, log *slog.Logger) {
	objects, unreachable := 0, 0
	for _, c := range clusters {
		h := c.Health()
		objects += h.Objects
		if !h.Complete {
			unreachable++
		}
	}
	took = took.Round(time.Second)
	switch {
	case len(clusters) == 0:
	case unreachable > 0:
		log.Info("all clusters that can be reached have been read", "clusters", len(clusters)-unreachable,
			"unreachable", unreachable, "objects", objects, "took", took)
	default:
		log.Info("all clusters have been read", "clusters", len(clusters), "objects", objects, "took", took)
		for _, pattern := range unused() {
			log.Warn("no cluster has a resource that this pattern of --include selects", "pattern", pattern)
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
