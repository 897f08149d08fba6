package main

import (
	"math"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// restoreGCPercent is the garbage collection target while states are read from disk. What is read stays, so that
	// most collections of a heap that grows from nothing would free little.
	restoreGCPercent = 400
	// restoreHeap is the size of the live heap at which the usual target is put back, so that a large mirror does not
	// need several times its memory.
	restoreHeap = 64 << 20
	// restoreHeapEvery is how often the size is looked at.
	restoreHeapEvery = 20 * time.Millisecond
)

// collectLess makes the garbage collector run less often until done is closed or the heap is large. A target that the
// user has set by GOGC or GOMEMLIMIT stays.
func collectLess(done <-chan struct{}) {
	usual := debug.SetGCPercent(restoreGCPercent)
	defer debug.SetGCPercent(usual)
	if usual != 100 || debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return
	}
	tick := time.NewTicker(restoreHeapEvery)
	defer tick.Stop()
	for liveHeap() < restoreHeap {
		select {
		case <-done:
			return
		case <-tick.C:
		}
	}
}

// liveHeap returns how many bytes the last collection has found in use.
func liveHeap() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
