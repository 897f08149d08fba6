package informertest

import (
	"io"
	"testing"
	"time"
)

// anyStepper is a Stepper for simulations that only check whether there is one.
type anyStepper struct{ Stepper }

func TestP11_AWatchClosedWithoutACauseIsDetected(t *testing.T) {
	for name, c := range map[string]struct {
		change func(ex *exchange)
		broken bool
	}{
		"it sent something a minute ago":        {func(ex *exchange) {}, true},
		"it missed three bookmarks":             {func(ex *exchange) { ex.spoke = ex.spoke.Add(-2 * time.Minute) }, false},
		"it went silent":                        {func(ex *exchange) { ex.held = true }, false},
		"its frames were delayed":               {func(ex *exchange) { ex.heldUntil = time.Now() }, false},
		"its bookmarks were withheld":           {func(ex *exchange) { ex.unmarked = true }, false},
		"what it sent was not read yet":         {func(ex *exchange) { ex.inbox = []byte("x") }, false},
		"its initial state is not complete":     {func(ex *exchange) { ex.initial = true }, false},
		"it was closed after its initial state": {func(ex *exchange) { ex.initial, ex.stated = true, true }, true},
		"the run was stopped":                   {func(ex *exchange) { ex.s.judge.cancelled = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &simulation{out: io.Discard, began: time.Now(), stepper: anyStepper{}}
			s.judge = newJudge(s)
			ex := &exchange{s: s, verb: "watch", watch: &watch{}, spoke: time.Now().Add(-time.Minute - time.Second)}
			c.change(ex)
			s.judge.closedEarly(ex)
			if broken := len(s.failed) > 0; broken != c.broken {
				t.Errorf("broken = %t, want %t: %v", broken, c.broken, s.failed)
			}
		})
	}
}

func TestBookmarksHaveTheTimingOfAnAPIServer(t *testing.T) {
	twice := 0
	for seconds := range 120 {
		begin := time.Unix(1_000_000, 0)
		b := bookmarkTimes{period: apiServerPeriod, end: begin.Add(5*time.Minute + time.Duration(seconds)*time.Second)}
		var all []time.Time
		for at, ok := b.after(begin); ok; at, ok = b.after(at) {
			all = append(all, at)
			if len(all) > 10 {
				t.Fatalf("the bookmarks never end: %v", all)
			}
		}
		before := begin
		for _, at := range all {
			gap := at.Sub(before)
			if last := b.end.Sub(at) <= 2*time.Second; !last &&
				(gap < 60200*time.Millisecond || gap > 60900*time.Millisecond) || !at.Before(b.end) {
				t.Errorf("a watch of %s has bookmarks at %v", b.end.Sub(begin), all)
			}
			before = at
		}
		if len(all) < 5 || b.end.Sub(all[len(all)-1]) > 2*time.Second {
			t.Errorf("a watch of %s has bookmarks at %v", b.end.Sub(begin), all)
		}
		if n := len(all); all[n-1].Sub(all[n-2]) < time.Second {
			twice++
		}
	}
	if twice < 30 || twice > 90 {
		t.Errorf("the last bookmark was sent twice in %d of 120 watches, want about half", twice)
	}
}
