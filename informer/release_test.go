package informer_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// A controller stops its informer and lets its workers drain their queue: they still find their objects.
func TestP9_WorkersThatDrainAfterTheStopFindTheirObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := make1(t, newFeed(state{10, []object.Item[*thing]{item("a", 1, ""), item("b", 2, "")}}),
			index("app", func(x *thing) []string { return []string{x.app} }))
		work := make(chan object.Key, 10)
		subscribe(t, r, &recorder{on: func(e object.Event[*thing]) { work <- e.Key }}, nil)
		r.run(t)
		synctest.Wait()
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		close(work)
		drained := 0
		for key := range work {
			drained++
			if _, found := r.Get(key); !found {
				t.Errorf("%s is not found after the stop", key)
			}
		}
		if drained != 2 {
			t.Errorf("%d keys were drained", drained)
		}
		snap := r.Snapshot()
		if n := count(snap.ByIndex("app", "a")); n != 1 || snap.Version() != "10" || snap.Len() != 2 {
			t.Errorf("after the stop the index has %d objects, the snapshot %d at version %s", n, snap.Len(), snap.Version())
		}
		if r.HasSynced() {
			t.Error("HasSynced is true after the Run")
		}
	})
}

func count[T any](seq func(func(T) bool)) (n int) {
	seq(func(T) bool { n++; return true })
	return n
}

func TestP9_ANewRunShowsNothingOfTheLastOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		feed := newFeed(state{10, []object.Item[*thing]{item("old", 1, "")}},
			state{30, []object.Item[*thing]{item("new", 20, "")}})
		hold := make(chan struct{})
		r := make1(t, feed, func(o *options) {
			o.Transform = func(x *thing) (*thing, error) {
				if x.name == "new" {
					<-hold
				}
				return x, nil
			}
		})
		r.run(t)
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		same(t, "store between the runs", contents(r), []string{"old=1"})
		ended := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { ended <- r.Run(ctx) }()
		synctest.Wait()
		rec := &recorder{}
		subscribe(t, r, rec, nil)
		synctest.Wait()
		same(t, "store before the first sync", contents(r), nil)
		same(t, "events before the first sync", rec.lines(), nil)
		if r.HasSynced() {
			t.Error("HasSynced is true before the first state of the new Run")
		}
		if _, found := r.Get("old"); found {
			t.Error("an object of the last Run is still found")
		}
		close(hold)
		if err := r.WaitSynced(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		same(t, "events", rec.lines(), []string{"Added new new=20 initial"})
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	})
}

func TestP9_ReleaseFreesTheMemory(t *testing.T) {
	for _, c := range []struct {
		name string
		drop func(*running) // releases the state of the informer
	}{
		{"by Release", func(r *running) {
			if err := r.Release(); err != nil {
				panic(err)
			}
		}},
		{"with the last reference", func(r *running) { r.Informer = nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				items := []object.Item[*thing]{item("a", 1, "")}
				var freed atomic.Bool
				runtime.AddCleanup(items[0].Value, func(f *atomic.Bool) { f.Store(true) }, &freed)
				r := make1(t, newFeed(state{10, items}))
				r.run(t)
				items[0].Value = nil
				if err := r.stop(); err != nil {
					t.Fatal(err)
				}
				collect := func() {
					for range 10 {
						runtime.GC()
					}
					time.Sleep(time.Second) // fake time: let the cleanup's goroutine run
				}
				if collect(); freed.Load() {
					t.Fatal("the object was freed before it was released")
				}
				c.drop(r)
				if collect(); !freed.Load() {
					t.Error("the object of a released informer is still held")
				}
				runtime.KeepAlive(r)
			})
		})
	}
}

func TestReleaseIsRefusedWhileTheInformerRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := make1(t, newFeed(state{10, []object.Item[*thing]{item("a", 1, "")}},
			state{30, []object.Item[*thing]{item("b", 20, "")}}))
		if err := r.Release(); err != nil {
			t.Errorf("Release before the first Run = %v", err)
		}
		r.run(t)
		if err := r.Release(); !errors.Is(err, informer.ErrRunning) {
			t.Errorf("Release while it runs = %v", err)
		}
		same(t, "store", contents(r), []string{"a=1"})
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := r.Release(); err != nil {
				t.Errorf("Release after the stop = %v", err)
			}
		}
		same(t, "store after Release", contents(r), nil)
		r.run(t)
		same(t, "store of the next Run", contents(r), []string{"b=20"})
	})
}

// Run, Release and readers run concurrently: a reader sees a complete state or none, and Release never empties the
// store of a running informer.
func TestP9_ReleaseBesideRunsAndReaders(t *testing.T) {
	const runs = 100
	r := make1(t, newFeed())
	over := make(chan struct{})
	var beside sync.WaitGroup
	beside.Go(func() {
		for !isOver(over) {
			if err := r.Release(); err != nil && !errors.Is(err, informer.ErrRunning) {
				t.Error(err)
			}
			runtime.Gosched()
		}
	})
	beside.Go(func() {
		for !isOver(over) {
			if n := r.Snapshot().Len(); n != 0 && n != 2 {
				t.Errorf("a snapshot has %d of 2 objects", n)
			}
			runtime.Gosched()
		}
	})
	for n := range runs {
		r.states <- state{10 * (n + 1), []object.Item[*thing]{item("a", 10*n+1, ""), item("b", 10*n+1, "")}}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		if err := r.WaitSynced(t.Context()); err != nil {
			t.Error(err)
		}
		if n := r.Snapshot().Len(); n != 2 {
			t.Errorf("the store of a Run that has synced has %d of 2 objects", n)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	close(over)
	beside.Wait()
}

func isOver(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A Run that is still dropping the state of the last one can be stopped.
func TestP9_ARunThatBeginsAgainCanBeStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over, end := context.WithCancel(t.Context())
		end()
		var r *running
		var stopped error
		r = make1(t, newFeed(state{10, []object.Item[*thing]{item("a", 1, "")}}, state{20, nil}),
			// DetectWrites is called while the store is emptied.
			func(o *options) { o.DetectWrites = func(store.Written) { stopped = r.Informer.Stop(over) } })
		r.run(t)
		synctest.Wait()
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		obj, _ := r.Get("a")
		obj.n = 2
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		if err := r.Informer.Run(ctx); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 0 || !errors.Is(stopped, context.Canceled) {
			t.Errorf("Stop said %v, and Run went on for %s", stopped, took)
		}
	})
}
