package disk

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// A disk that fails for a while: commits fail and reads wait for another engine or fail, and Run opens one when it can.
func TestRunOpensTheDatabaseAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		below := vfs.NewMem()
		o := quiet(errorfs.Wrap(below, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if broken.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				return errors.New("input/output error")
			}
			return nil
		})))
		d := mustOpen(t, "data", o)
		eu, _ := twoClusters(t, d)
		ctx, stop := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { d.Run(ctx) })

		began := time.Now()
		broken.Store(true)
		b := d.NewBatch()
		m := newMirror(t, eu)
		put := func() error {
			b.Put(eu, m.state(t, "ns/b", 9, start, jsonOf("ns/b", 1, 9, "x")))
			b.Reach(eu, "9", start)
			return b.Commit()
		}
		if err := put(); err == nil {
			t.Fatal("a commit on a broken disk succeeded")
		}
		time.Sleep(time.Minute)
		if h := d.Health(); h.Err == nil || h.Since.Sub(began) > time.Second {
			t.Errorf("the health of a broken disk is %+v", h)
		}
		if err := put(); err == nil {
			t.Fatal("a commit on a broken disk succeeded")
		}
		broken.Store(false)
		time.Sleep(2 * time.Minute) // the longest time between two attempts is one
		r, err := d.Restore(eu)
		if err != nil {
			t.Fatal(err)
		}
		if got := restoredStates(t, r); len(got) != 1 || got[0].key != "ns/a" {
			t.Errorf("after the failure there are %d states", len(got))
		}
		if err := put(); err != nil {
			t.Fatal(err)
		}
		if h := d.Health(); h.Err != nil || !h.Since.IsZero() || h.Committed.IsZero() || h.Bytes == 0 {
			t.Errorf("the health after the failure is %+v", h)
		}
		if r, err = d.Restore(eu); err != nil || len(restoredStates(t, r)) != 2 {
			t.Error(err)
		}
		stop()
		run.Wait()
		mustClose(t, d)
	})
}
