package main

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"go.uber.org/goleak"

	"github.com/mirador-k8s/mirador/fanout"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inFakeTime is a shorter version of `make overload`.
var inFakeTime = plan{keys: 500, rate: 5000, lasts: 8 * time.Second, quick: 3,
	takes: 10 * time.Millisecond, payload: 16}

// limit is the default backlog bound of a handler; what it has in hand, here a piece of the initial state, is not
// counted.
const (
	limit  = 10_000
	inHand = 128
)

func TestP7_ASlowHandlerIsCoalescedAndAffectsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := inFakeTime
		var objects []weak.Pointer[thing]
		r, err := begin(t.Context(), p, func(o *thing) { objects = append(objects, weak.Make(o)) })
		if err != nil {
			t.Fatal(err)
		}
		defer r.end()

		peak, coalescing := 0, false
		err = r.load(t.Context(), 10*time.Millisecond, func(st fanout.Stats) {
			synctest.Wait() // everything due now has been delivered
			st = r.behind.Stats()
			peak = max(peak, st.Backlog)
			if st.Backlog > limit+inHand {
				t.Errorf("%d events wait; the limit is %d and %d in hand", st.Backlog, limit, inHand)
			}
			// A coalesced object has at most its delete and its latest state in the backlog.
			coalescing = coalescing || st.Coalesced > 0
			if coalescing && st.Backlog > 2*p.keys+inHand {
				t.Errorf("%d events wait for %d objects, coalesced", st.Backlog, p.keys)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if peak < limit*9/10 {
			t.Errorf("at most %d events waited: the handler was not overloaded", peak)
		}
		busyAllTheTime(t, r)
		heldObjects(t, r, objects)

		if err := r.settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, fault := range r.faults() {
			t.Error(fault)
		}
		for n, q := range r.quick {
			if worst := q.delay(1); worst != 0 {
				t.Errorf("quick handler %d got an event %s after it had come", n, worst)
			}
		}
	})
}

// busyAllTheTime checks that the slow handler was called again as soon as it had returned.
func busyAllTheTime(t *testing.T, r *run) {
	t.Helper()
	st := r.behind.Stats()
	if want := uint64(r.plan.lasts / r.plan.takes); st.Delivered != want && st.Delivered+1 != want {
		t.Errorf("the slow handler was called %d times in %s, want %d", st.Delivered, r.plan.lasts, want)
	}
	if all := st.Delivered + st.Coalesced + uint64(st.Backlog); all != uint64(r.plan.keys+r.plan.events()) {
		t.Errorf("%d delivered, %d coalesced, %d waiting are %d events; there were %d",
			st.Delivered, st.Coalesced, st.Backlog, all, r.plan.keys+r.plan.events())
	}
}

// heldObjects counts the objects that are still referenced: those of the store, and for each object in the backlog
// what its handler saw last, the delete and the new state.
func heldObjects(t *testing.T, r *run, objects []weak.Pointer[thing]) {
	t.Helper()
	runtime.GC()
	held := 0
	for _, o := range objects {
		if o.Value() != nil {
			held++
		}
	}
	if most := 4 * r.plan.keys; held > most {
		t.Errorf("%d of %d objects are held with %d in the store, want at most %d", held, len(objects), r.plan.keys, most)
	}
	if held < r.plan.keys/2 {
		t.Errorf("only %d of %d objects are held: nothing was counted", held, len(objects))
	}
}

func TestWithoutTheSlowHandlerNothingIsCoalesced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := inFakeTime
		p.takes, p.lasts = 0, time.Second
		r, err := begin(t.Context(), p, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.end()
		if err := r.load(t.Context(), time.Second, func(fanout.Stats) {}); err != nil {
			t.Fatal(err)
		}
		if err := r.settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, fault := range r.faults() {
			t.Error(fault)
		}
		for _, sub := range r.subs {
			if st := sub.Stats(); st.Coalesced > 0 {
				t.Errorf("%s: %+v", sub.Name(), st)
			}
		}
	})
}

func TestAnInvalidPlanIsAnError(t *testing.T) {
	for _, change := range []func(*plan){
		func(p *plan) { p.keys = 0 },
		func(p *plan) { p.rate = 0 },
		func(p *plan) { p.lasts = 0 },
		func(p *plan) { p.quick = 0 },
	} {
		p := inFakeTime
		change(&p)
		if _, err := begin(t.Context(), p, nil); err == nil {
			t.Errorf("%+v was taken", p)
		}
	}
}
