package fanout_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mirador-k8s/mirador/fanout"
)

func TestP5_PublishedStateIsInitialAndBeforeLaterBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout.New[int](fanout.Options{})
		var a, b recorder
		first, second := join(t, f, opts{Handle: a.handle}), join(t, f, opts{Handle: b.handle})
		f.PublishState(1, events(add("x", 1), add("y", 2)))
		f.MarkSynced(1)
		f.Publish(2, []event{update("x", 1, 3)})
		synctest.Wait()
		want := []string{"+x 1!", "+y 2!", "~x 1>3"}
		same(t, "first handler", a.all(), want)
		same(t, "second handler", b.all(), want)
		if !first.HasSynced() || !second.HasSynced() || first.Stats().LastSeq != 2 {
			t.Errorf("synced: %v and %v, LastSeq %d", first.HasSynced(), second.HasSynced(), first.Stats().LastSeq)
		}
		stop(t, f)
	})
}

func TestStateCanBePublishedAfterOtherBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout.New[int](fanout.Options{})
		var r recorder
		join(t, f, opts{Handle: r.handle})
		f.Publish(1, []event{add("x", 1)})
		synctest.Wait()
		f.PublishState(2, events(add("y", 2), add("z", 3)))
		f.Publish(3, []event{update("x", 1, 4)})
		synctest.Wait()
		same(t, "seen", r.all(), []string{"+x 1", "+y 2!", "+z 3!", "~x 1>4"})
		stop(t, f)
	})
}

func TestP5_HandlerIsSyncedAfterWholePublishedState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout.New[int](fanout.Options{})
		g := newGate()
		s := joinEarly(t, f, opts{Handle: g.handle})
		f.PublishState(1, events(add("x", 1), add("y", 2)))
		f.MarkSynced(1)
		<-g.entered
		g.leave <- struct{}{}
		<-g.entered
		if s.HasSynced() {
			t.Error("synced while the last object of the state is being handled")
		}
		g.open()
		synctest.Wait()
		if !s.HasSynced() {
			t.Error("not synced after the state")
		}
		stop(t, f)
		g.shut()
	})
}

func TestLateJoinSkipsPublishedStateContainedInItsReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout.New[int](fanout.Options{})
		var early, late recorder
		join(t, f, opts{Handle: early.handle})
		// It takes its position before the state is published, and its replay afterwards.
		join(t, f, opts{Handle: late.handle, Replay: func() fanout.Replay[int] {
			f.PublishState(1, events(add("x", 1)))
			return fanout.Replay[int]{Seq: 1, Events: events(add("x", 1))}
		}})
		synctest.Wait()
		same(t, "early", early.all(), []string{"+x 1!"})
		same(t, "late", late.all(), []string{"+x 1!"})
		stop(t, f)
	})
}

func TestP7_WaitingStateIsCoalescedWithLaterBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout.New[int](fanout.Options{})
		g := newGate()
		join(t, f, opts{Handle: g.handle, MaxBacklog: 3})
		f.Publish(1, []event{add("busy", 0)})
		<-g.entered // and blocks
		f.PublishState(2, events(add("x", 1), add("y", 1)))
		for i := range 5 {
			f.Publish(uint64(3+i), []event{update("x", i+1, i+2)})
		}
		f.Publish(8, []event{remove("y", 1)})
		g.open()
		synctest.Wait()
		same(t, "events", g.all(), []string{"+busy 0", "+x 6!"})
		stop(t, f)
		g.shut()
	})
}

func TestPublishedStateIsReadInPieces(t *testing.T) {
	// A handler that is blocked holds at most one piece of the state.
	synctest.Test(t, func(t *testing.T) {
		f := fanout.New[int](fanout.Options{})
		g := newGate()
		s := join(t, f, opts{Handle: g.handle})
		read := 0
		f.PublishState(1, func(yield func(event) bool) {
			for i := range 100_000 {
				read++
				if !yield(add(fmt.Sprint(i), i)) {
					return
				}
			}
		})
		<-g.entered
		if read > 128 || s.Stats().Backlog > 128 {
			t.Errorf("%d objects read during the first callback, backlog %d; want at most 128", read, s.Stats().Backlog)
		}
		go s.Remove()
		g.open()
		synctest.Wait()
		stop(t, f)
		g.shut()
	})
}

// Handlers stay close together, so that an object decoded for one is still cached for the others.
func TestTogetherKeepsHandlersCloseToEachOther(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // with several processors one handler could fall behind
	synctest.Test(t, func(t *testing.T) {
		const objects, handlers = 5_000, 10
		f := fanout.New[int](fanout.Options{Together: true})
		var state []event
		for i := range objects {
			state = append(state, add(fmt.Sprint(i), i))
		}
		var mu sync.Mutex
		at, apart := make([]int, handlers), 0
		for h := range handlers {
			join(t, f, opts{Handle: func(event) {
				mu.Lock()
				defer mu.Unlock()
				at[h]++
				if last := slices.Min(at); last > 0 { // all have begun
					apart = max(apart, at[h]-last)
				}
			}})
		}
		f.PublishState(1, events(state...))
		synctest.Wait()
		if slices.Min(at) != objects || slices.Max(at) != objects {
			t.Errorf("the handlers received %v objects, want %d each", at, objects)
		}
		// Usually a few pieces, and about twenty with the race detector, which randomizes scheduling. Without
		// Together it is the whole state.
		if apart > objects/3 {
			t.Errorf("one handler was %d objects ahead of another, want at most a third of the state", apart)
		}
		stop(t, f)
	})
}
