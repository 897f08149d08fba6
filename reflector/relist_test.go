package reflector_test

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/reflector"
	"github.com/mirador-k8s/mirador/source"
)

func TestRelistListsNotOlderThanVersionReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{
			lists:   []reply{{version: "10", end: io.EOF}, {version: "20", end: io.EOF}},
			watches: []reply{{changes: []source.Change[string]{put("a", "12")}}, {}},
		}
		r, _, _ := start(t, s, nil)
		runFor(t, r, time.Second)
		r.Relist()
		runFor(t, r, time.Second)
		same(t, "asked", s.asked, []string{"list newest", `watch "10"`, "list since 12", `watch "20"`})
	})
}

func TestBackoffGrowsByFactor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{lists: []reply{{err: fail(source.Unavailable)}, {err: fail(source.Unavailable)},
			{err: fail(source.Unavailable)}, {version: "1", end: io.EOF}},
			watches: []reply{{}}}
		r, _, _ := start(t, s, func(o *reflector.Options[string]) {
			o.Backoff = reflector.Backoff{First: time.Second, Most: 5 * time.Second, Factor: 3,
				Rand: func() float64 { return 0 }}
		})
		runFor(t, r, time.Minute)
		for i, want := range []time.Duration{time.Second, 3 * time.Second, 5 * time.Second} {
			if got := s.times[i+1].Sub(s.times[i]); got != want {
				t.Errorf("wait %d was %s, want %s", i, got, want)
			}
		}
	})
}
