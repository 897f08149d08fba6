package disk

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mirador-k8s/mirador/object"
)

// The tests with models run without the race detector, because pebble checks itself under it and takes a stack for each
// iterator. This one has everything at once: commits, reads, Run with retention, Verify, Compact and a failure.
func TestReadsCommitsAndMaintenanceRunAtOnce(t *testing.T) {
	var clock atomic.Int64
	clock.Store(start.UnixNano())
	o := quiet(vfs.NewMem())
	o.tune = crashTune
	o.now = func() time.Time { return time.Unix(0, clock.Load()) }
	o.HistoryAge = time.Minute
	d := mustOpen(t, "data", o)
	beginResource(t, d, pods, ResourceOptions{History: true})
	b := d.NewBatch()
	b.Reach(pods, "1", start)
	mustCommit(t, b)
	ctx, stop := context.WithCancel(t.Context())
	var background, work sync.WaitGroup
	background.Go(func() { d.Run(ctx) })

	fault := errors.New("made to fail")
	done := make(chan struct{})
	each := func(do func() error) {
		work.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := do(); err != nil && !errors.Is(err, fault) && !errors.As(err, new(*BeforeHistoryError)) {
					t.Error(err)
					return
				}
			}
		})
	}
	read := func(r *Restored, err error) error {
		if err != nil {
			return err
		}
		for s, err := range r.States() {
			if err != nil {
				return err
			}
			if _, err := s.AppendJSON(nil); err != nil {
				return err
			}
		}
		return nil
	}
	each(func() error { return read(d.At(pods, o.now().Add(-20*time.Second), Filter{Label: "app=1"})) })
	each(func() error { return read(d.Restore(pods)) })
	each(func() error {
		d.awake()
		if _, err := d.Sizes(); err != nil {
			return err
		}
		damage, err := d.Verify(ctx, nil)
		if len(damage) > 0 {
			t.Error(damage)
		}
		return errors.Join(err, d.Compact(ctx))
	})
	m := newMirror(t, pods)
	for i := range 40 {
		at := time.Unix(0, clock.Add(int64(5*time.Second)))
		for n := range 10 {
			key := object.NewKey("shop", fmt.Sprint("pod-", (i+n)%15))
			b.Put(pods, m.state(t, key, 100*i+n+1, at, jsonOf(key, n, i, fmt.Sprint(i*n)), fmt.Sprint("app=", n%3)))
		}
		b.Reach(pods, object.Version(fmt.Sprint(100*i)), at)
		for err := b.Commit(); err != nil; err = b.Commit() {
			if !errors.Is(err, fault) {
				t.Fatal(err)
			}
			d.awake()
		}
		if i == 20 {
			d.mu.RLock()
			d.engine.files.fail(fault)
			d.mu.RUnlock()
			d.awake()
		}
	}
	close(done)
	work.Wait()
	stop()
	background.Wait()
	if err := d.broken(); err != nil {
		t.Error(err)
	}
	mustClose(t, d)
}
