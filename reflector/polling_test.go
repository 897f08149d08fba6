package reflector_test

import (
	"context"
	"fmt"
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

// stepFor is like runFor, but does not stop the reflector afterwards.
func stepFor(t *testing.T, r *reflector.Reflector[string], d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	for ctx.Err() == nil {
		wait, err := r.Step(ctx)
		if err != nil && ctx.Err() == nil {
			t.Fatal(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

func TestP12_SourceThatRefusesWatchesIsPolled(t *testing.T) {
	for _, reason := range []source.Reason{source.Denied, source.Unsupported} {
		for name, refusal := range map[string]reply{"refused": {err: fail(reason)},
			"refused in the stream": {end: fail(reason)}} {
			t.Run(reason.String()+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &script{lists: []reply{
						{version: "10", items: []string{"a@1"}, end: io.EOF},
						{version: "20", items: []string{"a@15"}, end: io.EOF},
						{version: "30", items: []string{"a@25"}, end: io.EOF}},
						watches: []reply{refusal}}
					r, c, _ := start(t, s, nil)
					stepFor(t, r, 5*time.Minute)
					same(t, "the first requests", s.asked[:6],
						[]string{"list newest", `watch "10"`, `watch "10"`, `watch "10"`, "list since 10", `watch "20"`})
					if !slices.Contains(c.got, "ReplaceEnd@30") {
						t.Errorf("the sink has no list at version 30: %q", c.got)
					}
					h := r.Health()
					if h.State != reflector.Polling || source.ReasonOf(h.Err) != reason || h.Version != "30" || h.NextTry.IsZero() {
						t.Errorf("health does not show that the source is polled, and why: %+v", h)
					}
					before := count(s.asked, "list")
					stepFor(t, r, time.Hour)
					if n := count(s.asked, "list") - before; n < 30 || n > 125 {
						t.Errorf("%d lists in an hour of polling, want at most two a minute", n)
					}
					s.watches = []reply{{changes: []source.Change[string]{bookmark("40", false)}, repeat: time.Minute}}
					stepFor(t, r, 2*time.Minute)
					lists := count(s.asked, "list")
					stepFor(t, r, time.Hour)
					if h := r.Health(); h.State != reflector.Streaming || h.Err != nil || count(s.asked, "list") != lists {
						t.Errorf("the reflector does not watch although it is allowed to: %+v", h)
					}
				})
			})
		}
	}
}

// A stream that sends nothing but a refusal counts as refused, however late the refusal arrives.
func TestP12_LateRefusalOfWatchCausesPolling(t *testing.T) {
	for _, reason := range []source.Reason{source.Denied, source.Unsupported} {
		for _, late := range []time.Duration{time.Second, 40 * time.Second} {
			for name, refusal := range map[string]reply{
				"the answer is late":     {after: late, err: fail(reason)},
				"the stream opens first": {after: late, end: fail(reason)},
			} {
				t.Run(fmt.Sprintf("%s after %s, %s", reason, late, name), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := &script{lists: []reply{
							{version: "10", items: []string{"a@1"}, end: io.EOF},
							{version: "20", items: []string{"a@15"}, end: io.EOF}},
							watches: []reply{refusal}}
						r, c, _ := start(t, s, nil)
						stepFor(t, r, 5*time.Minute)
						if !slices.Contains(c.got, "ReplaceEnd@20") {
							t.Errorf("the sink has no list at version 20: %q", c.got)
						}
						before := count(s.asked, "list")
						stepFor(t, r, time.Hour)
						if n := count(s.asked, "list") - before; n < 20 || n > 125 {
							t.Errorf("%d lists in an hour of polling, want at most two a minute", n)
						}
						if h := r.Health(); source.ReasonOf(h.Err) != reason {
							t.Errorf("health does not show why the source is polled: %+v", h)
						}
					})
				})
			}
		}
	}
}

// If lists and watches are refused for a while, no list is needed afterwards: the version
// reached is still valid.
func TestOutageOfCredentialsCostsNoList(t *testing.T) {
	for _, outage := range []time.Duration{5 * time.Second, time.Minute, 20 * time.Minute} {
		t.Run(outage.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				no := reply{err: fail(source.Denied)}
				s := &script{lists: []reply{{version: "10", items: []string{"a@1"}, end: io.EOF}, no}, watches: []reply{no}}
				r, c, _ := start(t, s, nil)
				stepFor(t, r, outage)
				refused := len(s.asked)
				if most := 10 + 2*int(outage/(30*time.Second)); refused > most {
					t.Errorf("%d requests in an outage of %s, want %d at most: %q", refused, outage, most, s.asked)
				}
				if h := r.Health(); h.Err == nil || h.State == reflector.Streaming {
					t.Errorf("health does not show that requests are refused: %+v", h)
				}
				s.lists = []reply{{version: "30", items: []string{"a@1"}, end: io.EOF}}
				s.watches = []reply{{changes: []source.Change[string]{put("a", "20")}, repeat: time.Minute}}
				stepFor(t, r, 3*time.Minute)
				same(t, "the first request after the outage", s.asked[refused:refused+1], []string{`watch "10"`})
				if n := count(s.asked[refused:], "list"); n > 0 {
					t.Errorf("%d lists after the outage, want none", n)
				}
				if !slices.Contains(c.got, "Updated a@20") {
					t.Errorf("the change made during the outage is missing: %q", c.got)
				}
				if h := r.Health(); h.State != reflector.Streaming || h.Err != nil || h.Version != "20" {
					t.Errorf("health after the outage: %+v", h)
				}
			})
		})
	}
}

// After an outage of credentials, permission to list may return without permission to watch.
func TestP12_PollingStartsWhenOnlyListsAreAllowedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		no := reply{err: fail(source.Denied)}
		s := &script{lists: []reply{{version: "10", items: []string{"a@1"}, end: io.EOF}, no}, watches: []reply{no}}
		r, c, _ := start(t, s, nil)
		stepFor(t, r, 20*time.Minute)
		s.lists = []reply{{version: "30", items: []string{"a@25"}, end: io.EOF}}
		stepFor(t, r, 5*time.Minute)
		polling := func(h reflector.Health) bool { // it may be in the middle of a list
			return h.State == reflector.Polling || h.State == reflector.Listing
		}
		if h := r.Health(); !polling(h) || count(c.got, "ReplaceEnd@30") < 2 {
			t.Errorf("the source is not polled although lists are allowed: %+v, %q", h, c.got)
		}
	})
}

func TestBriefRefusalOfWatchCostsNoList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		no := reply{err: fail(source.Denied)}
		s := &script{lists: []reply{{version: "10", end: io.EOF}}, watches: []reply{no, no, {}}}
		r, _, _ := start(t, s, nil)
		runFor(t, r, time.Minute)
		same(t, "asked", s.asked, []string{"list newest", `watch "10"`, `watch "10"`, `watch "10"`})
	})
}
