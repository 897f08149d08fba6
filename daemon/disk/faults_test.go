//go:build !race

package disk

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// faults lets operations of a file system fail.
type faults struct {
	mu     sync.Mutex
	count  int
	from   int // the first operation that fails
	length int // how many fail in succession
	err    error
	only   func(errorfs.Op) bool
	failed atomic.Int64
}

// MaybeError is part of errorfs.Injector.
func (f *faults) MaybeError(op errorfs.Op) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil || !f.only(op) {
		return nil
	}
	f.count++
	if f.count < f.from || f.count >= f.from+f.length {
		return nil
	}
	f.failed.Add(1)
	return f.err
}

// String is part of errorfs.Injector.
func (f *faults) String() string { return "faults" }

// mend ends the faults.
func (f *faults) mend() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = nil
}

// changesDisk and fills are operations that fail on a broken and on a full disk.
func changesDisk(op errorfs.Op) bool {
	return op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpFileClose && op.Kind != errorfs.OpLock
}

func fills(op errorfs.Op) bool {
	return slices.Contains([]errorfs.OpKind{errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileWriteAt,
		errorfs.OpMkdirAll, errorfs.OpRename, errorfs.OpReuseForWrite}, op.Kind)
}

// changesManifest are operations on the files that say which tables there are. Pebble does not repeat them well.
func changesManifest(op errorfs.Op) bool {
	return changesDisk(op) && (strings.Contains(op.Path, "MANIFEST-") || strings.Contains(op.Path, "marker.manifest"))
}

// 25 runs, 1,500 with MIRADOR_NIGHTLY.
func TestAFailingDiskLosesNothingThatWasAcknowledgedAndShowsNothingFalse(t *testing.T) {
	t.Parallel()
	failed := 0
	for seed := range uint64(number(25, 1500)) {
		r := rand.New(rand.NewPCG(seed, 5))
		f := &faults{from: 1 + r.IntN(number(120, 400)), length: 1 + r.IntN(6), err: syscall.EIO,
			only: changesDisk}
		switch r.IntN(3) {
		case 0:
			f.err, f.only = syscall.ENOSPC, fills
		case 1:
			f.from, f.only = 1+r.IntN(20), changesManifest
		}
		failed += runFaults(t, seed, f)
	}
	t.Logf("%d operations failed", failed)
	if failed == 0 {
		t.Error("no operation failed, so this tests nothing")
	}
}

// runFaults runs a workload while operations fail, and mends the disk after some batches.
func runFaults(t *testing.T, seed uint64, f *faults) int {
	mem := vfs.NewMem()
	o := quiet(errorfs.Wrap(mem, f))
	o.tune = crashTune
	name := fmt.Sprintf("seed %d, %v at operation %d for %d", seed, f.err, f.from, f.length)
	w, err := newWorkload(t, seed, o)
	if err != nil { // it failed while it was opened
		f.mend()
		if w, err = newWorkload(t, seed, o); err != nil {
			t.Fatalf("%s: open after a failure: %v", name, err)
		}
	}
	var closing sync.WaitGroup
	// reopen does what Run does when the database has failed.
	reopen := func() {
		t.Helper()
		if w.disk.broken() == nil {
			return
		}
		if _, err := w.disk.Restore(w.mirrors[0].res); err == nil {
			t.Fatalf("%s: a folder that has failed is read", name)
		}
		f.mend()
		if err := w.disk.revive(&closing); err != nil {
			t.Fatalf("%s: open again: %v", name, err)
		}
	}
	for i := range 15 {
		err := w.batch().Commit()
		if err != nil && w.disk.Health().Err == nil {
			t.Fatalf("%s: batch %d failed with %v, and the health is good", name, i, err)
		}
		reopen()
		for tries := 0; ; tries++ {
			err := w.tryNote()
			if err == nil {
				break
			}
			if tries == 5 {
				t.Fatalf("%s: read after batch %d: %v", name, i, err)
			}
			reopen() // it failed in the background
		}
		if got := w.newest[i]; err != nil && i > 0 && got != w.newest[i-1] &&
			!strings.Contains(got, fmt.Sprintf("sequence %d\n", w.version)) {
			t.Fatalf("%s: after the failed batch %d there is a state of neither before nor after it", name, i)
		}
		for err != nil { // the caller says again how the resources are kept
			b := w.disk.NewBatch()
			w.opens(b)
			err = b.Commit()
			reopen()
		}
	}
	f.mend()
	closing.Wait()
	if err := w.disk.Close(); err != nil {
		t.Logf("%s: close: %v", name, err)
	}
	last := len(w.newest) - 1
	w.checkFolder(name, w.onDisk(mem), last, last, true)
	return int(f.failed.Load())
}

// onDisk returns the options with another file system.
func (w *workload) onDisk(fs vfs.FS) Options {
	o := w.opts
	o.FS = fs
	return o
}

func TestAReadThatFailsIsAnErrorAndNothingElse(t *testing.T) {
	t.Parallel()
	reads := func(op errorfs.Op) bool {
		return slices.Contains([]errorfs.OpKind{errorfs.OpOpen, errorfs.OpFileRead, errorfs.OpFileReadAt, errorfs.OpStat,
			errorfs.OpFileStat, errorfs.OpList, errorfs.OpOpenDir}, op.Kind)
	}
	mem := vfs.NewMem()
	o := quiet(mem)
	o.tune = crashTune
	w, err := newWorkload(t, 1, o)
	if err != nil {
		t.Fatal(err)
	}
	for range 25 {
		mustCommit(t, w.batch())
		w.note()
	}
	mustClose(t, w.disk)
	last := len(w.newest) - 1
	failed := 0
	for at := 1; at < 600; at += number(9, 1) {
		f := &faults{from: at, length: 1, err: syscall.EIO, only: reads}
		o := w.onDisk(errorfs.Wrap(mem, f))
		d, err := Open("data", o)
		if err == nil {
			_, err = w.isOneOf(d, last, last)
			if closed := d.Close(); closed != nil && f.failed.Load() == 0 {
				t.Fatal(closed)
			}
		}
		if f.failed.Load() == 0 {
			if err != nil {
				t.Fatalf("no operation failed, and the error is %v", err)
			}
			break
		}
		failed++
		if err != nil && !errors.Is(err, syscall.EIO) && !strings.Contains(err.Error(), syscall.EIO.Error()) {
			t.Fatalf("operation %d failed, and the error is %v", at, err)
		}
	}
	if failed < 10 {
		t.Errorf("%d reads failed, so this tests little", failed)
	}
}
