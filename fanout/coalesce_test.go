package fanout_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/mirador-k8s/mirador/fanout"
	"github.com/mirador-k8s/mirador/object"
)

// coalesced publishes batches to a handler that is blocked in its first callback and whose
// events are coalesced. Then it unblocks the handler and returns what it saw.
func coalesced(t *testing.T, before []event, batches ...[]event) []string {
	t.Helper()
	var seen []string
	synctest.Test(t, func(t *testing.T) {
		f := fanout.New[int](fanout.Options{})
		g := newGate()
		s := join(t, f, opts{Handle: g.handle, MaxBacklog: 1})
		f.Publish(1, append(before, event{Type: object.Added, Key: "stuck"}))
		for range before {
			<-g.entered
			g.leave <- struct{}{}
		}
		<-g.entered
		total := 0
		// Events of another object exceed MaxBacklog.
		f.Publish(2, []event{add("filler", 1), update("filler", 1, 2), remove("filler", 2)})
		for i, b := range batches {
			total += len(b)
			f.Publish(uint64(i+3), b)
		}
		waiting := s.Stats()
		g.open()
		synctest.Wait()
		seen = g.all()[len(before)+1:]
		st := s.Stats()
		if got := int(st.Coalesced) + len(seen); got != total+3 {
			t.Errorf("%d events coalesced and %d delivered, want %d in all", st.Coalesced, len(seen), total+3)
		}
		if waiting.Backlog != len(seen)+1 {
			t.Errorf("the backlog was %d, but %d events were delivered", waiting.Backlog-1, len(seen))
		}
		if st.Backlog != 0 || st.LastSeq != uint64(len(batches)+2) {
			t.Errorf("stats at the end: %+v", st)
		}
		stop(t, f)
		g.shut()
	})
	return seen
}

func TestP3_CoalescedOldIsWhatTheHandlerSawLast(t *testing.T) {
	seen := coalesced(t,
		[]event{add("seen", 1), add("gone", 1), add("back", 1)},
		[]event{add("new", 1), update("seen", 1, 2), update("gone", 1, 2)},
		[]event{update("new", 1, 2), update("seen", 2, 3), remove("gone", 3), remove("back", 1)},
		[]event{update("new", 2, 3), add("back", 5), add("passing", 1)},
		[]event{remove("passing", 1)},
	)
	same(t, "seen", seen, []string{"+new 3", "~seen 1>3", "-gone 3", "-back 1", "+back 5"})
}

// Old of a Deleted event may be newer than any state that the handler saw, so it never becomes
// Old of an Updated event. If an Updated event is pending before it, that one has the state seen.
func TestP3_OldOfDeletedEventIsNeverOldOfUpdate(t *testing.T) {
	seen := coalesced(t,
		[]event{add("back", 1), add("changed", 1)},
		[]event{remove("back", 4), update("changed", 1, 2)},
		[]event{add("back", 5), remove("changed", 4)},
		[]event{update("back", 5, 6), add("changed", 5)},
	)
	same(t, "seen", seen, []string{"-back 4", "+back 6", "~changed 1>5"})
}

func TestP3_CoalescingKeepsInitialAndMissed(t *testing.T) {
	missed := remove("gone", 1)
	missed.Missed = true
	seen := coalesced(t, []event{add("gone", 1)},
		[]event{initial(add("a", 1)), missed},
		[]event{update("a", 1, 2)},
	)
	same(t, "seen", seen, []string{"+a 2!", "-gone 1?"})
}

func TestP6_CoalescedRecreatedObjectIsDeletedAndAdded(t *testing.T) {
	seen := coalesced(t, []event{uids(add("a", 1), "", "one")},
		[]event{uids(update("a", 1, 2), "one", "one")},
		[]event{uids(remove("a", 2), "one", "")},
		[]event{uids(add("a", 10), "", "two")},
		[]event{uids(update("a", 10, 11), "two", "two")},
	)
	same(t, "seen", seen, []string{"-a 2", "+a 11"})

	seen = coalesced(t, []event{uids(add("a", 1), "", "one")},
		[]event{uids(remove("a", 2), "one", ""), uids(add("a", 10), "", "two"), uids(remove("a", 11), "two", "")},
	)
	same(t, "the second object is deleted too", seen, []string{"-a 2"})

	seen = coalesced(t, []event{uids(add("a", 1), "", "one")},
		[]event{uids(update("a", 1, 10), "one", "two"), uids(update("a", 10, 11), "two", "two")},
	)
	same(t, "an update to another object stays an update", seen, []string{"~a 1>11"})
}

func TestP6_EveryAnnouncedObjectIsAnnouncedDeletedOnce(t *testing.T) {
	// Random streams over few keys to a handler whose events are coalesced at times. What it
	// sees must be consistent and complete, and end in the final state.
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 5))
			f := fanout.New[int](fanout.Options{})
			type known struct {
				value int
				uid   string
			}
			view := map[object.Key]known{}
			hold := make(chan struct{}, 10_000)
			s := join(t, f, opts{MaxBacklog: 1 + rng.IntN(8), Handle: func(e event) {
				<-hold
				was, seen := view[e.Key]
				switch {
				case e.Type == object.Added && !seen:
				case e.Type == object.Updated && seen && e.Old == was.value && e.NewUID == was.uid:
				case e.Type == object.Deleted && seen && e.OldUID == was.uid && e.Old >= was.value:
					delete(view, e.Key)
					return
				default:
					t.Errorf("seed %d: %s (%q>%q) after %v, seen: %v", seed, text(e), e.OldUID, e.NewUID, was, seen)
				}
				view[e.Key] = known{e.New, e.NewUID}
			}})
			truth := map[object.Key]known{}
			for v := 1; v < 400; v++ {
				key := object.Key(fmt.Sprint(rng.IntN(5)))
				was, exists := truth[key]
				var e event
				switch {
				case !exists:
					e = uids(add(string(key), v), "", fmt.Sprint("uid", v))
					truth[key] = known{v, e.NewUID}
				case rng.IntN(3) == 0:
					e = uids(remove(string(key), v), was.uid, "")
					delete(truth, key)
				default:
					e = uids(update(string(key), was.value, v), was.uid, was.uid)
					truth[key] = known{v, was.uid}
				}
				f.Publish(uint64(v), []event{e})
				if rng.IntN(2) == 0 {
					hold <- struct{}{}
				}
				if rng.IntN(4) == 0 {
					synctest.Wait()
				}
			}
			close(hold)
			synctest.Wait()
			if len(view) != len(truth) {
				t.Errorf("seed %d: the handler has %d objects, want %d", seed, len(view), len(truth))
			}
			for k, want := range truth {
				if view[k] != want {
					t.Errorf("seed %d: %s is %v, the handler has %v", seed, k, want, view[k])
				}
			}
			if st := s.Stats(); st.Delivered+st.Coalesced != 399 {
				t.Errorf("seed %d: %d delivered and %d coalesced, want 399 in all", seed, st.Delivered, st.Coalesced)
			}
			stop(t, f)
		})
		if t.Failed() {
			return
		}
	}
}

func TestP7_SlowHandlerIsBoundedAndDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout.New[int](fanout.Options{})
		slow := newGate()
		s := join(t, f, opts{Name: "slow", Handle: slow.handle, MaxBacklog: 100})
		var fast atomic.Int64
		join(t, f, opts{Name: "fast", Handle: func(event) { fast.Add(1) }, MaxBacklog: -1})
		f.Publish(1, []event{add("0", 0)})
		<-slow.entered
		const keys, rounds = 50, 1000
		seq, most := uint64(1), 0
		for round := range rounds {
			batch := make([]event, keys)
			for k := range batch {
				batch[k] = update(fmt.Sprint(k), round, round+1)
			}
			seq++
			f.Publish(seq, batch)
			most = max(most, s.Stats().Backlog)
		}
		synctest.Wait()
		if got := fast.Load(); got != keys*rounds+1 {
			t.Errorf("the fast handler received %d events, want %d", got, keys*rounds+1)
		}
		if most > 101 {
			t.Errorf("the largest backlog was %d, want at most 100 and the event being delivered", most)
		}
		time.Sleep(time.Minute)
		if st := s.Stats(); st.Running != time.Minute || st.RunningKey != "0" || st.OldestWaiting != time.Minute {
			t.Errorf("stats after a minute in a callback: %+v", st)
		}
		slow.open()
		synctest.Wait()
		if got := len(slow.all()); got != keys+1 {
			t.Errorf("the slow handler received %d events, want the first one and the latest of each of %d keys", got, keys)
		}
		// It has caught up and reads the chain again: nothing is coalesced any more.
		before := s.Stats().Coalesced
		f.Publish(seq+1, []event{update("0", rounds, rounds+1), update("0", rounds+1, rounds+2)})
		synctest.Wait()
		if st := s.Stats(); st.Coalesced != before || st.Delivered != keys+3 || st.Running != 0 || st.LastSeq != seq+1 {
			t.Errorf("stats after catching up: %+v", st)
		}
		stop(t, f)
		slow.shut()
	})
}

func TestP7_BlockedHandlerKeepsNoBatchAlive(t *testing.T) {
	f := fanout.New[*[1024]byte](fanout.Options{})
	entered, leave := make(chan struct{}, 1), make(chan struct{})
	s, err := f.Join(fanout.HandlerOptions[*[1024]byte]{MaxBacklog: 10, Handle: func(object.Event[*[1024]byte]) {
		select {
		case entered <- struct{}{}:
		default:
		}
		<-leave
	}})
	if err != nil {
		t.Fatal(err)
	}
	var objects []weak.Pointer[[1024]byte]
	publish := func(seq uint64) {
		obj := new([1024]byte)
		objects = append(objects, weak.Make(obj))
		f.Publish(seq, []object.Event[*[1024]byte]{{Type: object.Updated, Key: "a", New: obj}})
	}
	publish(1)
	<-entered
	for i := range 200 {
		publish(uint64(i + 2))
	}
	runtime.GC()
	alive := 0
	for _, o := range objects {
		if o.Value() != nil {
			alive++
		}
	}
	if alive > 3 { // the one in the callback, the latest, and the one it replaces
		t.Errorf("%d of %d objects are still in memory", alive, len(objects))
	}
	close(leave)
	if err := f.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	runtime.KeepAlive(s)
}

func TestIdleHandlerKeepsNoBatchAlive(t *testing.T) {
	f := fanout.New[*[1024]byte](fanout.Options{})
	got := make(chan struct{})
	s, err := f.Join(fanout.HandlerOptions[*[1024]byte]{Handle: func(object.Event[*[1024]byte]) { got <- struct{}{} }})
	if err != nil {
		t.Fatal(err)
	}
	obj := new([1024]byte)
	watch := weak.Make(obj)
	f.Publish(1, []object.Event[*[1024]byte]{{Type: object.Added, Key: "a", New: obj}})
	obj = nil
	<-got
	for s.Stats().LastSeq != 1 {
		runtime.Gosched()
	}
	runtime.GC()
	if watch.Value() != nil {
		t.Error("the last batch is still in memory")
	}
	if err := f.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	runtime.KeepAlive(f)
}

func TestOneBigBatchIsNotCoalesced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout.New[int](fanout.Options{})
		r := &recorder{}
		s := join(t, f, opts{Handle: r.handle, MaxBacklog: 10})
		batch := make([]event, 1000)
		for i := range batch {
			batch[i] = initial(add(fmt.Sprint(i), i))
		}
		f.Publish(1, batch)
		f.Publish(2, []event{update("0", 0, 1)})
		synctest.Wait()
		if st := s.Stats(); st.Coalesced != 0 || st.Delivered != 1001 {
			t.Errorf("stats: %+v", st)
		}
		stop(t, f)
	})
}

func TestNegativeMaxBacklogKeepsEveryEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout.New[int](fanout.Options{})
		g := newGate()
		s := join(t, f, opts{Handle: g.handle, MaxBacklog: -1})
		for i := range 20_000 {
			f.Publish(uint64(i+1), []event{update("a", i, i+1)})
		}
		<-g.entered
		if st := s.Stats(); st.Backlog != 20_000 || st.Coalesced != 0 {
			t.Errorf("stats: %+v", st)
		}
		g.open()
		synctest.Wait()
		if got := len(g.all()); got != 20_000 {
			t.Errorf("%d events delivered, want 20000", got)
		}
		stop(t, f)
		g.shut()
	})
}
