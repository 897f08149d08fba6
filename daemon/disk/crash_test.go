//go:build !race

package disk

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// A crash is what is left of the file system at one moment.
type crash struct {
	fs        *vfs.MemFS
	operation int
	acked     int // the last batch that was acknowledged before; -1 if none was
	begun     int // the last batch that was begun before
}

// crasher takes what a crash would leave at random operations of a file system.
type crasher struct {
	fs *vfs.MemFS
	r  *rand.Rand

	mu           sync.Mutex
	operation    int
	every        int
	acked, begun int
	crashes      []crash
}

func newCrasher(fs *vfs.MemFS, seed uint64, every int) *crasher {
	return &crasher{fs: fs, r: rand.New(rand.NewPCG(seed, 9)), every: every, acked: -1, begun: -1}
}

// MaybeError takes a crash before an operation, and lets all operations succeed.
func (c *crasher) MaybeError(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.operation++; c.r.IntN(c.every) != 0 {
		return nil
	}
	kept := c.r.IntN(101)
	if c.r.IntN(3) == 0 {
		kept = 0 // nothing that was not synced
	}
	clone := c.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: kept, RNG: c.r})
	c.crashes = append(c.crashes, crash{clone, c.operation, c.acked, c.begun})
	return nil
}

// String is part of errorfs.Injector.
func (c *crasher) String() string { return "crasher" }

// About 60 crashes, 1,000 with MIRADOR_NIGHTLY.
func TestAfterACrashTheStateIsThatOfAPrefixOfTheBatches(t *testing.T) {
	t.Parallel()
	total, further := 0, 0
	for seed := uint64(0); total < number(60, 1000); seed++ {
		fs := vfs.NewCrashableMem()
		c := newCrasher(fs, seed, 90)
		o := quiet(errorfs.Wrap(fs, c))
		o.tune = crashTune
		o.HistoryAge, o.HistoryBytes = 4*time.Minute, 60<<10
		w, err := newWorkload(t, seed, o)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 40 {
			b := w.batch()
			c.set(-1, i)
			mustCommit(t, b)
			c.set(i, i)
			w.note()
			switch w.r.IntN(12) {
			case 0:
				if err := w.disk.retain(t.Context()); err != nil {
					t.Fatal(err)
				}
			case 1:
				mustClose(t, w.disk)
				w.disk = mustOpen(t, "data", w.opts)
				again := w.disk.NewBatch()
				w.opens(again)
				mustCommit(t, again)
			case 2:
				if err := w.disk.Compact(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		mustClose(t, w.disk)
		for _, cr := range c.crashes {
			further += w.checkCrash(cr, seed)
		}
		total += len(c.crashes)
	}
	t.Logf("%d crashes, and %d while opening what was left", total, further)
}

// set records how far the workload is; -1 leaves acked as it is.
func (c *crasher) set(acked, begun int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acked, c.begun = max(acked, c.acked), begun
}

// checkCrash opens what a crash has left, and what crashes while it was opened have left. It returns their number.
func (w *workload) checkCrash(cr crash, seed uint64) int {
	w.t.Helper()
	name := fmt.Sprintf("seed %d, crash at operation %d", seed, cr.operation)
	again := newCrasher(cr.fs, seed^uint64(cr.operation), 60)
	o := w.opts
	o.FS = errorfs.Wrap(cr.fs, again)
	batch := w.checkFolder(name, o, cr.acked, cr.begun, false)
	for _, next := range again.crashes {
		o.FS = next.fs
		w.checkFolder(fmt.Sprint(name, ", and while it was opened at ", next.operation), o, max(cr.acked, -1), batch, true)
	}
	return len(again.crashes)
}

// checkFolder opens a folder, reads everything, writes to it and reads that. It returns the batch whose state it has.
func (w *workload) checkFolder(name string, o Options, first, last int, change bool) int {
	w.t.Helper()
	d, err := Open("data", o)
	if err != nil {
		w.t.Fatalf("%s: %v", name, err)
	}
	batch, err := w.isOneOf(d, first, last)
	if err != nil {
		w.t.Fatalf("%s: %v", name, err)
	}
	if damage, err := d.Verify(w.t.Context(), nil); err != nil || len(damage) > 0 {
		w.t.Fatalf("%s: %v %v", name, damage, err)
	}
	if change {
		b := d.NewBatch()
		w.opens(b)
		m := w.mirrors[w.r.IntN(len(w.mirrors))]
		s := m.state(w.t, "shop/after", 1_000_000+w.r.IntN(1_000_000), w.now, jsonOf("shop/after", 1, 1, "after"))
		b.Put(m.res, s)
		mustCommit(w.t, b)
		found := false
		for n, err := range d.Keys(m.res) {
			if err != nil {
				w.t.Fatalf("%s: %v", name, err)
			}
			found = found || n.Key == s.Key && n.Version == s.Version
		}
		if !found {
			w.t.Fatalf("%s: a change after it is not there", name)
		}
	}
	if err := d.Close(); err != nil {
		w.t.Fatalf("%s: %v", name, err)
	}
	return batch
}
