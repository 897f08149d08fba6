//go:build !race

package disk

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mirador-k8s/mirador/object"
)

// sizeOfFiles returns the bytes of all files of a folder.
func sizeOfFiles(t *testing.T, fs vfs.FS, dirs ...string) (total int64) {
	t.Helper()
	s, err := newSpace(fs, 0, dirs...)
	if err != nil {
		t.Fatal(err)
	}
	return s.used()
}

// A flood of incompressible changes, many times the limit and faster than Run makes room: the folder stays below it at
// every moment, what was refused is accepted soon, the newest states are complete, and old history goes first. 1,500
// changes, and 30,000 with MIRADOR_NIGHTLY.
func TestTheLimitIsNeverExceededUnderAFlood(t *testing.T) {
	const limit = 8 << 20
	fs := vfs.NewMem()
	o := quiet(fs)
	o.MaxBytes, o.tune = limit, func(*engineSizes) {} // the sizes are those for the limit
	d := mustOpen(t, "data", o)
	ctx, stop := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { d.Run(ctx) })
	beginResource(t, d, pods, ResourceOptions{History: true})
	m := newMirror(t, pods)
	r := rand.New(rand.NewPCG(1, 1))
	newest := map[string]string{}
	refused := 0
	now := time.Unix(1_700_000_000, 0)
	for i := 0; i < number(1500, 30_000); {
		states := make([]State, 5)
		for j := range states {
			i++
			key := object.Key(fmt.Sprintf("ns/object-%02d", r.IntN(50)))
			noise := make([]byte, 6<<10)
			for j := range noise {
				noise[j] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[r.IntN(64)]
			}
			now = now.Add(time.Millisecond)
			states[j] = m.state(t, key, i, now, jsonOf(key, i%5, i, string(noise)))
			newest[string(key)] = string(states[j].Version)
		}
		refused += commitWhenThereIsRoom(t, d, states, now)
		if size := sizeOfFiles(t, fs, "data", "data/db"); size > limit {
			t.Fatalf("after %d changes the folder has %d bytes of at most %d", i, size, limit)
		}
	}
	most := d.space.peak()
	if most > limit {
		t.Errorf("the folder had %d bytes of at most %d", most, limit)
	}
	got := map[string]string{}
	for n, err := range d.Keys(pods) {
		if err != nil {
			t.Fatal(err)
		}
		got[string(n.Key)] = string(n.Version)
	}
	for k, v := range newest {
		if got[k] != v {
			t.Fatalf("%s has version %s, want %s", k, got[k], v)
		}
	}
	begin, err := d.Begin(pods)
	if err != nil || !begin.After(time.Unix(1_700_000_001, 0)) {
		t.Errorf("the history begins at %s, so none was dropped: %v", begin, err)
	}
	t.Logf("%d batches were refused, the most bytes were %d, history begins %s before the end", refused, most,
		now.Sub(begin))
	stop()
	run.Wait()
	mustClose(t, d)
}

// commitWhenThereIsRoom repeats a batch until it is accepted, and returns how often it was refused.
func commitWhenThereIsRoom(t *testing.T, d *Disk, states []State, now time.Time) (refused int) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(30 * time.Second); ; <-tick.C {
		b := d.NewBatch()
		for _, s := range states {
			b.Put(pods, s)
		}
		b.Reach(pods, "1", now)
		err := b.Commit()
		if err == nil {
			return refused
		}
		if refused++; time.Now().After(late) {
			t.Fatalf("no room was made: %v", err)
		}
	}
}

// History beyond HistoryBytes is dropped, oldest first.
func TestHistoryIsDroppedByBytes(t *testing.T) {
	const limit = 1 << 20
	o := quiet(vfs.NewMem())
	o.HistoryBytes = limit
	d := mustOpen(t, "data", o)
	beginResource(t, d, pods, ResourceOptions{History: true})
	m := newMirror(t, pods)
	b := d.NewBatch()
	now := time.Unix(1_700_000_000, 0)
	r := rand.New(rand.NewPCG(3, 1))
	for i := range 1000 {
		now = now.Add(time.Second)
		key := object.Key(fmt.Sprint("ns/object-", i%50))
		noise := make([]byte, 3000)
		for j := range noise {
			noise[j] = byte('0' + r.IntN(64))
		}
		b.Put(pods, m.state(t, key, i+1, now, jsonOf(key, i%5, i+1, string(noise))))
		b.Reach(pods, "1", now)
		if b.Len() > 50 {
			mustCommit(t, b)
		}
		if i%200 == 199 {
			if err := d.engine.db.Flush(); err != nil {
				t.Fatal(err)
			}
			if err := d.retain(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	mustCommit(t, b)
	begin, err := d.Begin(pods)
	if err != nil || now.Sub(begin) > 12*time.Minute || now.Sub(begin) < time.Minute {
		t.Fatalf("the history begins at %s, %s before the last change: %v", begin, now.Sub(begin), err)
	}
	if err := d.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	sizes, err := d.Sizes()
	if err != nil {
		t.Fatal(err)
	}
	s := sizes[0].Resources[0]
	if s.Objects != 50 || s.Changes < 50 || s.Changes > 900 || s.History+s.Bases > 2*limit || s.State == 0 ||
		s.Bases == 0 {
		t.Errorf("the sizes are %d objects, %d changes, history %d, bases %d, state %d; the limit is %d", s.Objects,
			s.Changes, s.History, s.Bases, s.State, limit)
	}
	mustClose(t, d)
}
