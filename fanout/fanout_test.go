package fanout_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/fanout"
)

func TestP3_AllHandlersSeeTheSameSequence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout.New[int](fanout.Options{})
		recorders := make([]recorder, 5)
		for i := range recorders {
			join(t, f, opts{Handle: recorders[i].handle})
		}
		var want []string
		for seq := range uint64(200) {
			batch := []event{add(fmt.Sprint("k", seq), 1), update(fmt.Sprint("k", seq), 1, 2), remove("x", int(seq))}
			for _, e := range batch {
				want = append(want, text(e))
			}
			f.Publish(seq+1, batch)
		}
		synctest.Wait()
		for i := range recorders {
			same(t, fmt.Sprint("handler ", i), recorders[i].all(), want)
		}
		stop(t, f)
	})
}

func TestP5_InitialEventsComeBeforeSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout.New[int](fanout.Options{})
		g := newGate()
		s := joinEarly(t, f, opts{Handle: g.handle})
		f.Publish(1, []event{initial(add("a", 1)), initial(add("b", 1))})
		f.MarkSynced(1)
		<-g.entered
		synctest.Wait()
		if s.HasSynced() {
			t.Error("synced before the first callback has returned")
		}
		g.leave <- struct{}{}
		<-g.entered
		synctest.Wait()
		if s.HasSynced() {
			t.Error("synced before the last callback has returned")
		}
		g.leave <- struct{}{}
		<-s.Synced()
		same(t, "seen", g.all(), []string{"+a 1!", "+b 1!"})

		late := &recorder{}
		s = join(t, f, opts{Handle: late.handle, Replay: state(1, add("a", 1), add("b", 1))})
		<-s.Synced()
		same(t, "seen by the late handler", late.all(), []string{"+a 1!", "+b 1!"})
		stop(t, f)
	})
}

func TestP5_EmptyStateIsSyncedAfterMarkSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout.New[int](fanout.Options{})
		s := joinEarly(t, f, opts{Handle: func(event) {}, Replay: state(0)})
		synctest.Wait()
		if s.HasSynced() {
			t.Error("synced before MarkSynced")
		}
		f.Publish(1, nil)
		f.MarkSynced(1)
		<-s.Synced()
		s = join(t, f, opts{Handle: func(event) {}})
		<-s.Synced()
		stop(t, f)
	})
}

func TestP5_UndeliveredDeletedObjectDoesNotDelaySynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout.New[int](fanout.Options{})
		g := newGate()
		s := joinEarly(t, f, opts{Handle: g.handle, MaxBacklog: 1})
		f.Publish(1, []event{initial(add("a", 1))})
		<-g.entered
		f.Publish(2, []event{initial(add("b", 1)), initial(add("c", 1))})
		f.Publish(3, []event{remove("b", 1), update("c", 1, 2)})
		f.MarkSynced(2)
		g.open()
		<-s.Synced()
		same(t, "seen", g.all(), []string{"+a 1!", "+c 2!"})
		stop(t, f)
		g.shut()
	})
}

func TestNoNotificationIsLost(t *testing.T) {
	f := fanout.New[int](fanout.Options{})
	var got atomic.Int64
	arrived := make(chan struct{}, 1)
	join(t, f, opts{Handle: func(event) { got.Add(1); arrived <- struct{}{} }})
	// Each batch is published when the runner is about to end.
	for i := range 50_000 {
		f.Publish(uint64(i+1), []event{add("a", i)})
		<-arrived
	}
	if got.Load() != 50_000 {
		t.Errorf("%d events delivered, want 50000", got.Load())
	}
	stop(t, f)
}

func TestThousandHandlersReceiveEveryEvent(t *testing.T) {
	f := fanout.New[int](fanout.Options{})
	const handlers, batches = 1000, 100
	var total atomic.Int64
	all := make(chan struct{})
	for range handlers {
		next := 0
		join(t, f, opts{Handle: func(e event) {
			if e.New != next {
				t.Errorf("received %d, want %d", e.New, next)
			}
			next++
			if total.Add(1) == handlers*batches {
				close(all)
			}
		}})
	}
	if got := len(f.Subscriptions()); got != handlers {
		t.Errorf("%d subscriptions, want %d", got, handlers)
	}
	for i := range batches {
		f.Publish(uint64(i+1), []event{add("a", i)})
	}
	<-all
	stop(t, f)
}

// runners counts the goroutines that deliver events. It counts stacks, because
// runtime.NumGoroutine is sometimes wrong.
func runners() int {
	buf := make([]byte, 4<<20)
	buf = buf[:runtime.Stack(buf, true)]
	return strings.Count(string(buf), "Subscription[...]).turn(")
}

func TestIdleHandlersHaveNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout.New[int](fanout.Options{})
		for range 100 {
			join(t, f, opts{Handle: func(event) {}, Replay: state(0, add("a", 0)), Resync: time.Hour, State: state(0)})
		}
		busy := newGate()
		join(t, f, opts{Handle: busy.handle})
		f.Publish(1, []event{add("a", 1)})
		f.MarkSynced(1)
		<-busy.entered
		synctest.Wait()
		if n := runners(); n != 1 {
			t.Errorf("%d runners with 100 idle handlers and a busy one, want 1", n)
		}
		busy.leave <- struct{}{}
		synctest.Wait()
		if n := runners(); n != 0 {
			t.Errorf("%d runners with 101 idle handlers, want 0", n)
		}
		stop(t, f)
	})
}

func TestPublishWithoutHandlersAllocatesNothing(t *testing.T) {
	f := fanout.New[int](fanout.Options{})
	batch := []event{add("a", 1)}
	seq := uint64(0)
	if n := testing.AllocsPerRun(100, func() { seq++; f.Publish(seq, batch) }); n > 0 {
		t.Errorf("%v allocations, want none", n)
	}
	r := &recorder{}
	join(t, f, opts{Handle: r.handle})
	f.Publish(seq+1, []event{add("b", 1)})
	stop(t, f)
	if got := r.all(); slices.Contains(got, "+a 1") {
		t.Errorf("a handler received a batch published before it joined: %v", got)
	}
}

func TestPublishAllocatesNothingPerHandlerOrEvent(t *testing.T) {
	f := fanout.New[int](fanout.Options{})
	const handlers, size = 10, 100
	var delivered atomic.Int64
	all := make(chan struct{}, 1)
	for range handlers {
		join(t, f, opts{Handle: func(event) {
			if delivered.Add(1)%(handlers*size) == 0 {
				all <- struct{}{}
			}
		}})
	}
	batch := make([]event, size)
	for i := range batch {
		batch[i] = add("a", i)
	}
	seq := uint64(0)
	// One node for the batch; the runtime sometimes allocates for goroutines.
	if n := testing.AllocsPerRun(200, func() {
		seq++
		f.Publish(seq, batch)
		<-all
	}); n > 3 {
		t.Errorf("%v allocations for %d events and %d handlers, want at most 3", n, size, handlers)
	}
	stop(t, f)
}

func TestInvalidOptionsAreRejected(t *testing.T) {
	f := fanout.New[int](fanout.Options{})
	handle := func(event) {}
	for want, o := range map[string]opts{
		"Handle":   {},
		"negative": {Handle: handle, Resync: -1},
		"State":    {Handle: handle, Resync: time.Second},
	} {
		o.Name = "named"
		if _, err := f.Join(o); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "named") {
			t.Errorf("Join: %v, want an error that mentions %s", err, want)
		}
	}
	s := join(t, f, opts{Handle: handle})
	if s.Name() == "" {
		t.Error("a handler without a name has no default name")
	}
	if err := s.SetResync(time.Second); err == nil {
		t.Error("SetResync without State returned no error")
	}
	if err := s.SetResync(-1); err == nil {
		t.Error("SetResync with a negative period returned no error")
	}
	stop(t, f)
	if _, err := f.Join(opts{Handle: handle}); err == nil || !strings.Contains(err.Error(), "stopped") {
		t.Errorf("Join after Stop: %v", err)
	}
	f.Publish(1, []event{add("a", 1)})
	f.MarkSynced(1)
}
