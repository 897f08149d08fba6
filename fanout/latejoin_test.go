package fanout_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/fanout"
	"github.com/mirador-k8s/mirador/object"
)

func TestLateJoinUnderLoadHasNoGapsAndNoDuplicates(t *testing.T) {
	// The state is one counter per key, and every batch increments one of them. Each handler
	// checks that it sees every increment after its initial state or, if its backlog is
	// bounded, that Old is always the value it saw last. A resync must repeat what it has.
	f := fanout.New[int](fanout.Options{})
	const keys, joiners = 7, 20
	var mu sync.Mutex
	var seq uint64
	values := make([]int, keys)
	replay := func() fanout.Replay[int] {
		mu.Lock()
		defer mu.Unlock()
		var list []event
		for k, v := range values {
			list = append(list, add(fmt.Sprint(k), v))
		}
		return fanout.Replay[int]{Seq: seq, Events: events(list...)}
	}
	var resynced atomic.Uint64
	views := make([]map[object.Key]int, joiners)
	var subs []*sub
	joinOne := func(j int) {
		views[j] = map[object.Key]int{}
		o := opts{Name: fmt.Sprint(j), MaxBacklog: -1, Replay: replay, Resync: time.Millisecond, State: replay}
		everyStep := j%2 == 0
		if !everyStep {
			o.MaxBacklog = 5
		}
		o.Handle = func(e event) {
			prev, seen := views[j][e.Key]
			good := e.Initial && !seen
			switch e.Type {
			case object.Updated:
				good = seen && e.Old == prev && (e.New == prev+1 || e.New > prev && !everyStep)
			case object.Resynced:
				good = seen && e.New == prev
				resynced.Add(1)
			}
			if !good {
				t.Errorf("handler %d: %s after %d (seen: %v)", j, text(e), prev, seen)
			}
			views[j][e.Key] = e.New
		}
		subs = append(subs, join(t, f, o))
	}
	var coalesced uint64
	for i := 0; i < 5000 || resynced.Load() == 0 || coalesced == 0; i++ {
		if i%200 == 0 && len(subs) < joiners {
			joinOne(len(subs))
		}
		k := i % keys
		mu.Lock()
		seq++
		values[k]++
		e := update(fmt.Sprint(k), values[k]-1, values[k])
		mu.Unlock()
		f.Publish(seq, []event{e})
		coalesced = subs[len(subs)-1].Stats().Coalesced + subs[len(subs)/2].Stats().Coalesced
	}
	want := map[object.Key]int{}
	for k, v := range values {
		want[object.Key(fmt.Sprint(k))] = v
	}
	for j, s := range subs {
		for s.Stats().LastSeq < seq {
			runtime.Gosched()
		}
		s.Remove()
		<-s.Done()
		same(t, fmt.Sprint("final state of handler ", j), views[j], want)
		if got := s.Stats().Coalesced; got != 0 && j%2 == 0 {
			t.Errorf("handler %d: %d events coalesced, want none", j, got)
		}
	}
	stop(t, f)
}

func TestLateJoinSkipsBatchesContainedInItsState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout.New[int](fanout.Options{})
		r := &recorder{}
		// The state is two batches newer than what was published.
		join(t, f, opts{Handle: r.handle, Replay: state(3, add("a", 3))})
		synctest.Wait()
		f.Publish(2, []event{update("a", 1, 2)})
		f.Publish(3, []event{update("a", 2, 3)})
		f.Publish(4, []event{update("a", 3, 4)})
		synctest.Wait()
		same(t, "seen", r.all(), []string{"+a 3!", "~a 3>4"})
		stop(t, f)
	})
}

func TestLongReplayIsBoundedAndDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout.New[int](fanout.Options{})
		fast, slow := &recorder{}, newGate()
		join(t, f, opts{Handle: fast.handle})
		s := join(t, f, opts{Handle: slow.handle, Replay: state(1, add("a", 1), add("b", 1)), MaxBacklog: 3})
		<-slow.entered
		f.Publish(1, []event{add("a", 1), add("b", 1)}) // contained in the replay
		for v := 1; v < 100; v++ {
			f.Publish(uint64(v+1), []event{update("a", v, v+1)})
		}
		synctest.Wait()
		if got := len(fast.all()); got != 101 {
			t.Errorf("the other handler received %d events, want 101", got)
		}
		if b := s.Stats().Backlog; b > 6 {
			t.Errorf("backlog %d, want at most 6", b)
		}
		slow.open()
		synctest.Wait()
		same(t, "seen", slow.all(), []string{"+a 1!", "+b 1!", "~a 1>100"})
		stop(t, f)
		slow.shut()
	})
}
