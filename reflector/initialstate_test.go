package reflector_test

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/reflector"
	"github.com/mirador-k8s/mirador/source"
)

// After an initial state that failed, states are listed for a while, not for ever.
func TestFailedInitialStateIsRequestedAgainLater(t *testing.T) {
	for name, first := range map[string]reply{
		"the stream ended": {changes: []source.Change[string]{put("a", "3")}, end: io.EOF},
		"silence":          {},
		"not supported":    {err: fail(source.Unsupported)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				state := []source.Change[string]{bookmark("30", true)}
				s := &script{initialState: true,
					watches: []reply{first, {after: 2 * time.Minute, end: fail(source.Expired)},
						{after: 4 * time.Minute, end: fail(source.Expired)},
						{changes: state, after: 4 * time.Minute, end: fail(source.Expired)}, {changes: state}},
					lists: []reply{{version: "10", end: io.EOF}, {version: "20", end: io.EOF}}}
				r, _, _ := start(t, s, nil)
				runFor(t, r, 12*time.Minute)
				same(t, "asked", s.asked, []string{`initial ""`, "list newest", `watch "10"`,
					"list since 10", `watch "20"`, // soon after the failure, the state is listed
					`initial "20"`, `initial "30"`})
			})
		})
	}
}

// incompleteInitialState ends each initial state without its bookmark, and each other watch
// after a minute with an expired version.
type incompleteInitialState struct{ *script }

func (s incompleteInitialState) Watch(ctx context.Context, o source.WatchOptions) (source.Watcher[string], error) {
	s.watches = []reply{{after: time.Minute, end: fail(source.Expired)}}
	if o.InitialState {
		s.watches = []reply{{end: io.EOF}}
	}
	return s.script.Watch(ctx, o)
}

func TestP11_MissingInitialStateIsRequestedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{initialState: true, lists: []reply{{version: "10", end: io.EOF}}}
		r, err := reflector.New(reflector.Options[string]{Source: incompleteInitialState{s}, Sink: &collector{}})
		if err != nil {
			t.Fatal(err)
		}
		runFor(t, r, 24*time.Hour)
		if n := count(s.asked, "initial"); n < 10 || n > 30 {
			t.Errorf("requested an initial state %d times in a day, want about once an hour", n)
		}
	})
}
