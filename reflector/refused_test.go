package reflector_test

import (
	"context"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/reflector"
	"github.com/mirador-k8s/mirador/source"
)

// count counts the requests of one kind.
func count(asked []string, prefix string) (n int) {
	for _, a := range asked {
		if len(a) >= len(prefix) && a[:len(prefix)] == prefix {
			n++
		}
	}
	return n
}

// turnFor is runFor for a reflector that is not stopped afterwards.
func turnFor(t *testing.T, r *reflector.Reflector[string], d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	for more := true; more; {
		var err error
		if more, err = r.Turn(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

func TestP12_ASourceThatMayBeListedAndNotWatchedIsPolled(t *testing.T) {
	for _, reason := range []source.Reason{source.Denied, source.Unsupported} {
		for name, refusal := range map[string]reply{"refused": {err: fail(reason)}, "refused in the stream": {end: fail(reason)}} {
			t.Run(reason.String()+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &script{lists: []reply{
						{version: "10", items: []string{"a@1"}, end: io.EOF},
						{version: "20", items: []string{"a@15"}, end: io.EOF},
						{version: "30", items: []string{"a@25"}, end: io.EOF}},
						watches: []reply{refusal}}
					r, c, _ := start(t, s, nil)
					turnFor(t, r, 5*time.Minute)
					same(t, "the first requests", s.asked[:6], []string{"list newest", `watch "10"`, `watch "10"`, `watch "10"`, "list since 10", `watch "20"`})
					if !slices.Contains(c.got, "ReplaceEnd@30") {
						t.Errorf("nothing newer than the first lists arrived: %q", c.got)
					}
					h := r.Health()
					if h.State != reflector.Polling || source.ReasonOf(h.Err) != reason || h.Version != "30" || h.NextTry.IsZero() {
						t.Errorf("health does not say that the source is polled, and why: %+v", h)
					}
					before := count(s.asked, "list")
					turnFor(t, r, time.Hour)
					if n := count(s.asked, "list") - before; n < 30 || n > 125 {
						t.Errorf("%d lists in an hour of polling, want one or two a minute at most", n)
					}
					s.watches = []reply{{changes: []source.Change[string]{bookmark("40", false)}, again: time.Minute}}
					turnFor(t, r, 2*time.Minute)
					lists := count(s.asked, "list")
					turnFor(t, r, time.Hour)
					if h := r.Health(); h.State != reflector.Streaming || h.Err != nil || count(s.asked, "list") != lists {
						t.Errorf("it does not watch again although it may: %+v", h)
					}
				})
			})
		}
	}
}

func TestRightsMissingForAMomentCostNoList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		no := reply{err: fail(source.Denied)}
		s := &script{lists: []reply{{version: "10", end: io.EOF}}, watches: []reply{no, no, {}}}
		r, _, _ := start(t, s, nil)
		runFor(t, r, time.Minute)
		same(t, "asked", s.asked, []string{"list newest", `watch "10"`, `watch "10"`, `watch "10"`})
	})
}
