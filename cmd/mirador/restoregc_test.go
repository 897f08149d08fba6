package main

import (
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"
)

func gcPercent() int {
	now := debug.SetGCPercent(100)
	debug.SetGCPercent(now)
	return now
}

func TestTheGarbageCollectorRunsLessOftenWhileStatesAreRead(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	synctest.Test(t, func(t *testing.T) {
		done := make(chan struct{})
		go collectLess(done)
		synctest.Wait()
		if got := gcPercent(); got != restoreGCPercent {
			t.Errorf("the target is %d%% while states are read", got)
		}
		close(done)
		synctest.Wait()
		if got := gcPercent(); got != 100 {
			t.Errorf("the target is %d%% when they are read", got)
		}
	})
}

func TestALargeHeapIsCollectedAsUsual(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	large := make([]byte, restoreHeap)
	runtime.GC()
	collectLess(nil) // returns
	if got := gcPercent(); got != 100 {
		t.Errorf("the target is %d%%", got)
	}
	runtime.KeepAlive(large)
}

func TestATargetOfTheUserStays(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	collectLess(nil) // returns
	if got := gcPercent(); got != 50 {
		t.Errorf("the target is %d%%", got)
	}
	debug.SetGCPercent(100)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 40))
	collectLess(nil) // returns
	if got := gcPercent(); got != 100 {
		t.Errorf("with a limit of memory, the target is %d%%", got)
	}
}
