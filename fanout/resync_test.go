package fanout_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/fanout"
	"github.com/mirador-k8s/mirador/object"
)

func TestResyncRepeatsStateAfterEachPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout.New[int](fanout.Options{})
		r, other := &recorder{}, &recorder{}
		s := join(t, f, opts{Handle: r.handle, Resync: time.Minute, State: state(1, add("a", 1), initial(add("b", 2)))})
		join(t, f, opts{Handle: other.handle})
		f.Publish(1, []event{add("a", 1), add("b", 2)})
		time.Sleep(time.Minute)
		synctest.Wait()
		once := []string{"+a 1", "+b 2", "=a 1", "=b 2"}
		same(t, "after a minute", r.all(), once)
		time.Sleep(time.Minute)
		synctest.Wait()
		same(t, "after two", r.all(), append(once, "=a 1", "=b 2"))
		same(t, "seen by the other handler", other.all(), []string{"+a 1", "+b 2"})

		if err := s.SetResync(0); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := len(r.all()); got != 6 {
			t.Errorf("%d events after SetResync(0), want 6", got)
		}
		if err := s.SetResync(time.Second); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := len(r.all()); got != 8 {
			t.Errorf("%d events after SetResync(1s), want 8", got)
		}
		s.Remove()
		<-s.Done()
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := len(r.all()); got != 8 {
			t.Errorf("%d events after Remove, want 8", got)
		}
		stop(t, f)
	})
}

func TestResyncIsDeliveredInOrderOfItsSequenceNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout.New[int](fanout.Options{})
		r := &recorder{}
		// The state contains batch 3 when only batch 1 was published.
		join(t, f, opts{Handle: r.handle, Resync: time.Minute, State: state(3, add("a", 3))})
		f.Publish(1, []event{add("a", 1)})
		time.Sleep(time.Minute)
		synctest.Wait()
		f.Publish(2, []event{update("a", 1, 2)})
		synctest.Wait()
		same(t, "before batch 3", r.all(), []string{"+a 1", "~a 1>2"})
		f.Publish(3, []event{update("a", 2, 3)})
		f.Publish(4, []event{update("a", 3, 4)})
		synctest.Wait()
		same(t, "seen", r.all(), []string{"+a 1", "~a 1>2", "~a 2>3", "=a 3", "~a 3>4"})
		stop(t, f)
	})
}

func TestResyncAtEmptyBatchIsDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout.New[int](fanout.Options{})
		r := &recorder{}
		join(t, f, opts{Handle: r.handle, Resync: time.Minute, State: state(2, add("a", 1))})
		f.Publish(1, []event{add("a", 1)})
		time.Sleep(time.Minute)
		synctest.Wait()
		same(t, "before", r.all(), []string{"+a 1"})
		f.Publish(2, nil)
		synctest.Wait()
		same(t, "after", r.all(), []string{"+a 1", "=a 1"})
		stop(t, f)
	})
}

func TestResyncIsDroppedWhileAnotherIsUndelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout.New[int](fanout.Options{})
		g := newGate()
		s := join(t, f, opts{Handle: g.handle, Resync: time.Minute, State: state(0, add("a", 1), add("b", 1))})
		<-g.entered // the first resync has begun
		time.Sleep(10*time.Minute + time.Second)
		if err := s.SetResync(0); err != nil {
			t.Error(err)
		}
		g.open()
		synctest.Wait()
		same(t, "seen", g.all(), []string{"=a 1", "=b 1"})
		stop(t, f)
		g.shut()
	})
}

func TestResyncWaitsUntilCoalescedHandlerHasCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout.New[int](fanout.Options{})
		g := newGate()
		value, seq := 1, uint64(1)
		s := join(t, f, opts{Handle: g.handle, MaxBacklog: 2, Resync: time.Minute, State: func() fanout.Replay[int] {
			return fanout.Replay[int]{Seq: seq, Events: events(add("a", value))}
		}})
		f.Publish(1, []event{add("a", 1)})
		<-g.entered
		time.Sleep(time.Minute)
		synctest.Wait()
		for range 10 {
			seq++
			value++
			f.Publish(seq, []event{update("a", value-1, value)})
		}
		if s.Stats().Coalesced == 0 {
			t.Error("nothing was coalesced")
		}
		g.open()
		synctest.Wait()
		same(t, "seen", g.all(), []string{"+a 1", "~a 1>11", "=a 11"})
		stop(t, f)
		g.shut()
	})
}

func TestCoalescingPrefersChangesToResyncedEvents(t *testing.T) {
	resynced := func(key string, v int) event {
		e := update(key, v, v)
		e.Type = object.Resynced
		return e
	}
	seen := coalesced(t, []event{add("a", 1), add("b", 1), add("c", 1)},
		[]event{resynced("a", 1), resynced("b", 1), update("c", 1, 2)},
		[]event{resynced("a", 1), update("b", 1, 2), resynced("c", 2)},
	)
	same(t, "seen", seen, []string{"=a 1", "~b 1>2", "~c 1>2"})
}
