package reflector_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/reflector"
	"github.com/mirador-k8s/mirador/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a source that answers each request with the next reply, and repeats the last one.
type script struct {
	initialState bool
	lists        []reply
	watches      []reply
	asked        []string
	times        []time.Time
}

// reply is the result of one list or watch: an error at once, or items or changes
// and then an end. If end is nil, the stream blocks until it is cancelled.
type reply struct {
	err     error
	version object.Version
	items   []string // "key@version"
	changes []source.Change[string]
	after   time.Duration // the delay before the end, or before the error of a watch
	repeat  time.Duration // the interval at which the changes are repeated; 0 for never
	end     error
}

func (s *script) Describe() source.Description {
	return source.Description{Resource: "things", InitialState: s.initialState}
}

func next(replies *[]reply) reply {
	if len(*replies) == 0 {
		return reply{err: errors.New("the script has no reply for this")}
	}
	r := (*replies)[0]
	if len(*replies) > 1 {
		*replies = (*replies)[1:]
	}
	return r
}

func (s *script) note(format string, args ...any) {
	s.asked = append(s.asked, fmt.Sprintf(format, args...))
	s.times = append(s.times, time.Now())
}

func (s *script) List(ctx context.Context, o source.ListOptions) (source.Lister[string], error) {
	pages := ""
	if o.PageSize == source.OnePage {
		pages = " in one page"
	}
	s.note("list %s%s", []string{"newest", "any", "since " + string(o.Version)}[o.Match], pages)
	r := next(&s.lists)
	return &stream{ctx: ctx, reply: r}, r.err
}

func (s *script) Watch(ctx context.Context, o source.WatchOptions) (source.Watcher[string], error) {
	what := "watch"
	if o.InitialState {
		what = "initial"
	}
	s.note("%s %q", what, o.Version)
	r := next(&s.watches)
	if r.err != nil && r.after > 0 {
		time.Sleep(r.after)
	}
	return &watchStream{stream{ctx: ctx, reply: r}}, r.err
}

type stream struct {
	ctx   context.Context
	reply reply
	sent  bool
}

func (s *stream) Read(buf []object.Item[string]) ([]object.Item[string], error) {
	if !s.sent {
		s.sent = true
		for _, it := range s.reply.items {
			key, v, _ := strings.Cut(it, "@")
			buf = append(buf, object.Item[string]{Key: object.Key(key), Version: object.Version(v), Value: it})
		}
		if len(buf) > 0 {
			return buf, nil
		}
	}
	return buf, s.wait()
}

func (s *stream) wait() error {
	if s.reply.end != nil {
		if s.reply.after > 0 {
			select {
			case <-time.After(s.reply.after):
			case <-s.ctx.Done():
				return s.ctx.Err()
			}
		}
		return s.reply.end
	}
	<-s.ctx.Done()
	return s.ctx.Err()
}

func (s *stream) Version() object.Version { return s.reply.version }
func (s *stream) Close() error            { return nil }

type watchStream struct{ stream }

func (s *watchStream) Read(buf []source.Change[string]) ([]source.Change[string], error) {
	if s.sent && s.reply.repeat > 0 {
		select {
		case <-time.After(s.reply.repeat):
			return append(buf, s.reply.changes...), nil
		case <-s.ctx.Done():
			return buf, s.ctx.Err()
		}
	}
	if !s.sent {
		s.sent = true
		if len(s.reply.changes) > 0 {
			return append(buf, s.reply.changes...), nil
		}
	}
	return buf, s.wait()
}

// collector is a sink that records each delta as a line of text.
type collector struct{ got []string }

func (c *collector) Push(_ context.Context, deltas []object.Delta[string]) error {
	for _, d := range deltas {
		line := d.Type.String()
		if d.Item.Key != "" {
			line += " " + string(d.Item.Key)
		}
		if d.Item.Version != "" {
			line += "@" + string(d.Item.Version)
		}
		if d.NewEpoch {
			line += " new epoch"
		}
		c.got = append(c.got, line)
	}
	return nil
}

func put(key, v string) source.Change[string] {
	return source.Change[string]{Type: object.Updated,
		Item: object.Item[string]{Key: object.Key(key), Version: object.Version(v)}}
}

func bookmark(v string, end bool) source.Change[string] {
	return source.Change[string]{Type: object.Bookmark, InitialEnd: end,
		Item: object.Item[string]{Version: object.Version(v)}}
}

func fail(reason source.Reason) error {
	return &source.Error{Reason: reason, Err: errors.New("scripted: " + reason.String())}
}

// start returns a reflector of a script. There is no jitter, so that waits are exact.
func start(t *testing.T, s *script,
	change func(*reflector.Options[string])) (*reflector.Reflector[string], *collector, *[]string) {
	t.Helper()
	c, problems := &collector{}, &[]string{}
	opts := reflector.Options[string]{Source: s, Sink: c,
		Backoff:   reflector.Backoff{Rand: func() float64 { return 0 }},
		OnProblem: func(p reflector.Problem) { *problems = append(*problems, p.Doing) }}
	if change != nil {
		change(&opts)
	}
	r, err := reflector.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r, c, problems
}

// runFor runs a reflector for d of fake time.
func runFor(t *testing.T, r *reflector.Reflector[string], d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := r.Run(ctx); err != nil {
		t.Fatalf("Run: %v", err)
	}
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

func TestListThenWatchFromItsVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{
			lists:   []reply{{version: "10", items: []string{"a@3", "b@7"}, end: io.EOF}},
			watches: []reply{{changes: []source.Change[string]{put("a", "11"), bookmark("20", false)}}},
		}
		r, c, problems := start(t, s, nil)
		runFor(t, r, time.Second)
		same(t, "asked", s.asked, []string{"list newest", `watch "10"`})
		same(t, "pushed", c.got, []string{"ReplaceBegin", "Replaced a@3", "Replaced b@7", "ReplaceEnd@10",
			"Updated a@11", "Bookmark@20"})
		same(t, "problems", *problems, nil)
		if h := r.Health(); h.Version != "20" || h.State != reflector.Stopped || h.Lists != 1 || h.Watches != 1 {
			t.Errorf("health = %+v", h)
		}
	})
}

func TestInitialStateIsReadFromWatchIfSupported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{initialState: true, watches: []reply{{changes: []source.Change[string]{
			put("a", "3"), {Type: object.Deleted, Item: object.Item[string]{Key: "b", Version: "9"}}, bookmark("10",
				true), put("a", "11")}}}}
		r, c, problems := start(t, s, nil)
		ctx := t.Context()
		for range 2 {
			if _, err := r.Step(ctx); err != nil {
				t.Fatal(err)
			}
		}
		same(t, "asked", s.asked, []string{`initial ""`})
		same(t, "pushed", c.got, []string{"ReplaceBegin", "Replaced a@3", "Deleted b@9", "ReplaceEnd@10", "Updated a@11"})
		same(t, "problems", *problems, nil)
		if h := r.Health(); h.State != reflector.Streaming || !h.InitialState || h.Version != "11" {
			t.Errorf("health = %+v", h)
		}
	})
}

func TestP11_IncompleteInitialStateIsReplacedByList(t *testing.T) {
	for name, first := range map[string]reply{
		"never closed":   {changes: []source.Change[string]{put("a", "3")}},
		"closed early":   {changes: []source.Change[string]{put("a", "3")}, end: io.EOF},
		"closed at once": {end: io.EOF},
		"refused":        {err: fail(source.Unsupported)},
		"silent":         {},
		"not allowed":    {err: fail(source.Denied)},
		"only bookmarks": {changes: []source.Change[string]{bookmark("5", false)}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{initialState: true,
					watches: []reply{first, {}},
					lists:   []reply{{version: "10", items: []string{"a@3"}, end: io.EOF}}}
				r, c, problems := start(t, s, nil)
				runFor(t, r, time.Minute)
				same(t, "asked", s.asked, []string{`initial ""`, "list newest", `watch "10"`})
				same(t, "problems", *problems, []string{"initial state"})
				tail := c.got[max(0, len(c.got)-3):]
				same(t, "the last deltas pushed", tail, []string{"ReplaceBegin", "Replaced a@3", "ReplaceEnd@10"})
				if first.err == nil && !slices.Contains(c.got, "ReplaceAbort") {
					t.Error("the incomplete state was not aborted")
				}
			})
		})
	}
}

func TestExpiredWatchIsRelistedNotOlderThanVersionReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{
			lists:   []reply{{version: "10", end: io.EOF}, {version: "30", end: io.EOF}},
			watches: []reply{{changes: []source.Change[string]{put("a", "12")}, end: fail(source.Expired)}, {}},
		}
		r, c, problems := start(t, s, nil)
		runFor(t, r, time.Second)
		same(t, "asked", s.asked, []string{"list newest", `watch "10"`, "list since 12", `watch "30"`})
		same(t, "pushed", c.got, []string{"ReplaceBegin", "ReplaceEnd@10", "Updated a@12", "ReplaceBegin", "ReplaceEnd@30"})
		same(t, "problems", *problems, []string{"stream"})
	})
}

// A restarted API server has lost its watch cache. It refuses connections at first, and
// then reports the version as expired; by then it is available.
func TestExpiredVersionAfterOutageIsRelistedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := reply{err: fail(source.Refused)}
		s := &script{
			lists: []reply{{version: "10", end: io.EOF}, {version: "30", end: io.EOF}},
			watches: []reply{{after: time.Minute, end: fail(source.Unavailable)}, away, away, away,
				{err: fail(source.Expired)}, {}},
		}
		r, _, _ := start(t, s, nil)
		runFor(t, r, 5*time.Minute)
		same(t, "asked", s.asked, []string{"list newest", `watch "10"`, `watch "10"`, `watch "10"`, `watch "10"`,
			`watch "10"`, "list since 10", `watch "30"`})
		if d := s.times[6].Sub(s.times[5]); d != 0 {
			t.Errorf("the list was requested %s after the version had expired, want 0s", d)
		}
		if d := s.times[5].Sub(s.times[4]); d == 0 {
			t.Error("there was no wait between two refused watches")
		}
	})
}

func TestListThatExpiresIsAbortedAndReplacedByNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{
			lists: []reply{{version: "10", items: []string{"a@1"}, end: fail(source.Expired)},
				{version: "20", items: []string{"a@1"}, end: io.EOF}},
			watches: []reply{{}},
		}
		r, c, _ := start(t, s, func(o *reflector.Options[string]) { o.FirstList = source.Any })
		runFor(t, r, time.Second)
		same(t, "asked", s.asked, []string{"list any", "list newest in one page", `watch "20"`})
		same(t, "pushed", c.got, []string{"ReplaceBegin", "Replaced a@1", "ReplaceAbort", "ReplaceBegin",
			"Replaced a@1", "ReplaceEnd@20"})
	})
}

func TestP2_OlderListIsAcceptedOnlyIfItIsTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{
			lists: []reply{{version: "100", end: io.EOF},
				{version: "50", items: []string{"a@5"}, end: io.EOF},  // a replica that lags behind
				{version: "60", items: []string{"a@6"}, end: io.EOF},  // the newest state: history was reset
				{version: "61", items: []string{"a@6"}, end: io.EOF}}, // the state of the new epoch
			watches: []reply{{end: fail(source.Expired)}, {}},
		}
		r, c, problems := start(t, s, nil)
		runFor(t, r, 10*time.Second)
		same(t, "asked", s.asked, []string{"list newest", `watch "100"`, "list since 100", "list newest",
			"list newest", `watch "61"`})
		same(t, "pushed", c.got, []string{"ReplaceBegin", "ReplaceEnd@100",
			"ReplaceBegin", "Replaced a@5", "ReplaceAbort",
			"ReplaceBegin", "Replaced a@6", "ReplaceAbort",
			"ReplaceBegin new epoch", "Replaced a@6", "ReplaceEnd@61 new epoch"})
		same(t, "problems", *problems, []string{"stream", "list", "list"})
		if h := r.Health(); h.Epochs != 1 {
			t.Errorf("epochs = %d", h.Epochs)
		}
	})
}

func TestP2_OlderBookmarkCausesListOfNewestState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{
			lists:   []reply{{version: "100", end: io.EOF}, {version: "60", end: io.EOF}},
			watches: []reply{{changes: []source.Change[string]{bookmark("55", false)}}, {}},
		}
		r, c, _ := start(t, s, nil)
		runFor(t, r, 10*time.Second)
		same(t, "asked", s.asked, []string{"list newest", `watch "100"`, "list newest", `watch "60"`})
		same(t, "pushed", c.got, []string{"ReplaceBegin", "ReplaceEnd@100", "ReplaceBegin new epoch",
			"ReplaceEnd@60 new epoch"})
	})
}

func TestTrustOrderAcceptsOlderVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{
			lists:   []reply{{version: "100", end: io.EOF}, {version: "60", end: io.EOF}},
			watches: []reply{{changes: []source.Change[string]{bookmark("55", false)}, end: fail(source.Expired)}, {}},
		}
		r, c, _ := start(t, s, func(o *reflector.Options[string]) { o.TrustOrder = true })
		runFor(t, r, 10*time.Second)
		same(t, "asked", s.asked, []string{"list newest", `watch "100"`, "list since 55", `watch "60"`})
		same(t, "pushed", c.got, []string{"ReplaceBegin", "ReplaceEnd@100", "Bookmark@55", "ReplaceBegin", "ReplaceEnd@60"})
	})
}

func TestStartAtBeginsWithWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{initialState: true, watches: []reply{{changes: []source.Change[string]{put("a", "43")}}}}
		r, c, _ := start(t, s, func(o *reflector.Options[string]) { o.StartAt = "42" })
		runFor(t, r, time.Second)
		same(t, "asked", s.asked, []string{`watch "42"`})
		same(t, "pushed", c.got, []string{"Updated a@43"})
	})
}

func TestStateThatIsNotTrustedIsListedInNewEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{lists: []reply{{version: "40", items: []string{"a@39"}, end: io.EOF}}, watches: []reply{{}}}
		r, c, _ := start(t, s, func(o *reflector.Options[string]) { o.StartAt = "42" })
		r.Distrust()
		runFor(t, r, time.Second)
		same(t, "asked", s.asked, []string{"list newest", `watch "40"`})
		same(t, "pushed", c.got, []string{"ReplaceBegin new epoch", "Replaced a@39", "ReplaceEnd@40 new epoch"})
		if h := r.Health(); h.Epochs != 1 {
			t.Errorf("%d epochs", h.Epochs)
		}
	})
}

// Each case is a source that fails in some way, and how many requests an hour of that may cost.
func TestP11_RequestsAreBoundedWhateverTheSourceDoes(t *testing.T) {
	ok := reply{version: "10", end: io.EOF}
	refuse := func(r source.Reason) reply { return reply{err: fail(r)} }
	for name, c := range map[string]struct {
		script script
		most   int
	}{
		"connections are refused":   {script{lists: []reply{refuse(source.Refused)}}, 140},
		"every list fails":          {script{lists: []reply{refuse(source.Unavailable)}}, 140},
		"every list expires":        {script{lists: []reply{refuse(source.Expired)}}, 140},
		"every list is ahead":       {script{lists: []reply{refuse(source.Ahead)}}, 140},
		"forbidden":                 {script{lists: []reply{refuse(source.Denied)}}, 140},
		"not served":                {script{lists: []reply{refuse(source.NotServed)}}, 70},
		"not served, initial state": {script{initialState: true, watches: []reply{refuse(source.NotServed)}}, 70},
		"lists break half way":      {script{lists: []reply{{items: []string{"a@1"}, end: fail(source.Garbled)}}}, 140},
		"lists fall silent":         {script{lists: []reply{{}}}, 140},
		"watches are denied":        {script{lists: []reply{ok}, watches: []reply{refuse(source.Denied)}}, 280},
		"watches are not supported": {script{lists: []reply{ok}, watches: []reply{refuse(source.Unsupported)}}, 280},
		"every page expires":        {script{lists: []reply{{items: []string{"a@1"}, end: fail(source.Expired)}}}, 280},
		"watches are refused":       {script{lists: []reply{ok}, watches: []reply{refuse(source.Unavailable)}}, 140},
		"watches expire":            {script{lists: []reply{ok}, watches: []reply{refuse(source.Expired)}}, 280},
		"streams expire after a change": {script{lists: []reply{ok},
			watches: []reply{{changes: []source.Change[string]{put("a", "11")}, end: fail(source.Expired)}}}, 280},
		"streams end at once": {script{lists: []reply{ok}, watches: []reply{{end: io.EOF}}}, 140},
		"streams end after a change": {script{lists: []reply{ok},
			watches: []reply{{changes: []source.Change[string]{put("a", "11")}, end: io.EOF}}}, 140},
		"streams are garbage": {script{lists: []reply{ok}, watches: []reply{{end: fail(source.Garbled)}}}, 140},
		"streams fall silent": {script{lists: []reply{ok}, watches: []reply{{}}}, 15},
		"forbidden, initial state": {script{initialState: true, watches: []reply{refuse(source.Denied)},
			lists: []reply{refuse(source.Denied)}}, 280},
		"streams expire after a second": {script{lists: []reply{ok},
			watches: []reply{{after: time.Second, end: fail(source.Expired)}}}, 280},
		"bookmarks go back": {script{lists: []reply{ok},
			watches: []reply{{changes: []source.Change[string]{bookmark("5", false)}}}}, 280},
		"bookmarks go back at once": {script{initialState: true,
			watches: []reply{{changes: []source.Change[string]{bookmark("10", true), bookmark("5", false)}}}}, 140},
		"an initial state without end": {script{initialState: true,
			watches: []reply{{changes: []source.Change[string]{put("a", "1")}, repeat: time.Second}},
			lists:   []reply{refuse(source.Refused)}}, 140},
		"initial state, then expired": {script{initialState: true,
			watches: []reply{{changes: []source.Change[string]{bookmark("10", true)}, end: fail(source.Expired)}}}, 140},
		"initial state, then the end": {script{initialState: true,
			watches: []reply{{changes: []source.Change[string]{bookmark("10", true)}, end: io.EOF}}}, 140},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _, problems := start(t, &c.script, nil)
				runFor(t, r, time.Hour)
				if n := len(c.script.asked); n > c.most || n < 2 {
					t.Errorf("%d requests in an hour, want 2 to %d; the first: %q", n, c.most, c.script.asked[:min(6, n)])
				}
				if len(*problems) == 0 {
					t.Error("P12: nothing was reported")
				}
			})
		})
	}
}

func TestP11_RetryAfterIsHonoured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := &source.Error{Reason: source.Throttled, RetryAfter: 17 * time.Second, Err: errors.New("too busy")}
		s := &script{lists: []reply{{err: busy}, {version: "10", end: io.EOF}}, watches: []reply{{err: busy}, {}}}
		r, _, _ := start(t, s, nil)
		runFor(t, r, time.Minute)
		same(t, "asked", s.asked, []string{"list newest", "list newest", `watch "10"`, `watch "10"`})
		for _, i := range []int{1, 3} {
			if d := s.times[i].Sub(s.times[i-1]); d < 17*time.Second {
				t.Errorf("%s was repeated after %s, want at least 17s", s.asked[i], d)
			}
		}
	})
}

func TestP11_CancelIsImmediateInEveryState(t *testing.T) {
	for name, s := range map[string]*script{
		"waiting":         {lists: []reply{{err: fail(source.Refused)}}},
		"reading a list":  {lists: []reply{{}}},
		"following":       {lists: []reply{{version: "1", end: io.EOF}}, watches: []reply{{}}},
		"initial state":   {initialState: true, watches: []reply{{}}},
		"long not served": {lists: []reply{{err: fail(source.NotServed)}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _, _ := start(t, s, nil)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- r.Run(ctx) }()
				time.Sleep(10*time.Second + 300*time.Millisecond) // fake time: in the middle of a wait
				synctest.Wait()
				before := time.Now()
				cancel()
				if err := <-done; err != nil {
					t.Errorf("Run: %v", err)
				}
				if d := time.Since(before); d != 0 {
					t.Errorf("stopping took %s", d)
				}
				if r.Health().State != reflector.Stopped {
					t.Errorf("state = %s", r.Health().State)
				}
			})
		})
	}
}

func TestP11_ResourceIsReadOnceItIsServedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := reply{err: fail(source.NotServed)}
		s := &script{lists: []reply{gone, gone, gone, gone, gone, {version: "10", end: io.EOF}}, watches: []reply{{}}}
		r, c, _ := start(t, s, nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if h := r.Health(); h.State != reflector.NotServed || h.Err == nil || h.NextTry.IsZero() {
			t.Errorf("health while not served: %+v", h)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if h := r.Health(); h.State != reflector.Streaming || !slices.Contains(c.got, "ReplaceEnd@10") {
			t.Errorf("the resource was not read again: %+v, %q", h, c.got)
		}
		cancel()
		<-done
	})
}

func TestP14_HealthReportsLastEventAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{lists: []reply{{version: "10", end: io.EOF}},
			watches: []reply{{changes: []source.Change[string]{put("a", "11")}}}}
		r, _, _ := start(t, s, nil)
		if h := r.Health(); h.State != reflector.Starting || h.Age(time.Now()) != 0 {
			t.Errorf("health before the start: %+v", h)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		time.Sleep(90 * time.Second)
		if age := r.Health().Age(time.Now()); age != 90*time.Second {
			t.Errorf("age = %s, want 1m30s", age)
		}
		cancel()
		<-done
	})
}

// slowSink blocks in Push for some time.
type slowSink struct{ takes time.Duration }

func (k slowSink) Push(context.Context, []object.Delta[string]) error {
	time.Sleep(k.takes)
	return nil
}

func TestP14_LastEventIsTimeOfReadNotOfPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := source.Change[string]{Type: object.Bookmark, InitialEnd: true, Item: object.Item[string]{Version: "10"}}
		s := &script{initialState: true,
			watches: []reply{{changes: []source.Change[string]{put("a", "9"), end, put("a", "11")}}}}
		r, err := reflector.New(reflector.Options[string]{Source: s, Sink: slowSink{time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		var read time.Time
		for range 2 { // open the stream, read everything
			read = time.Now()
			if _, err := r.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if h := r.Health(); h.Version != "11" || !h.LastEvent.Equal(read) {
			t.Errorf("version %s, last event at %s, want 11 and %s", h.Version, h.LastEvent, read)
		}
	})
}

// If bookmarks arrive every minute, three missing ones mean a dead connection. The reflector
// does not wait for the timeout of the watch.
func TestP14_StreamWithoutBookmarksIsReopened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{lists: []reply{{version: "10", end: io.EOF}}, watches: []reply{{}}}
		pulse := &pulsing{script: s, every: time.Minute, beats: 3}
		c := &collector{}
		r, err := reflector.New(reflector.Options[string]{Source: pulse, Sink: c,
			Backoff: reflector.Backoff{Rand: func() float64 { return 0.9 }}})
		if err != nil {
			t.Fatal(err)
		}
		runFor(t, r, 6*time.Minute+31*time.Second)
		if got := len(s.asked); got != 3 || r.Health().Silences != 1 {
			t.Errorf("asked %q; want the watch reopened once, three and a half minutes after its last bookmark", s.asked)
		}
	})
}

// pulsing is a source whose watches send some bookmarks at a fixed interval and are then silent.
type pulsing struct {
	*script
	every time.Duration
	beats int // bookmarks of each watch
	total int // bookmarks sent by all watches
}

func (p *pulsing) Watch(ctx context.Context, o source.WatchOptions) (source.Watcher[string], error) {
	p.note("watch %q", o.Version)
	return &pulse{ctx: ctx, p: p, end: time.After(o.Timeout)}, nil
}

type pulse struct {
	ctx  context.Context
	p    *pulsing
	sent int
	end  <-chan time.Time
}

func (w *pulse) Close() error { return nil }
func (w *pulse) Read(buf []source.Change[string]) ([]source.Change[string], error) {
	beat := make(<-chan time.Time)
	if w.sent < w.p.beats {
		beat = time.After(w.p.every)
	}
	select {
	case <-w.ctx.Done():
		return buf, w.ctx.Err()
	case <-w.end:
		return buf, io.EOF
	case <-beat:
		w.sent++
		w.p.total++
		return append(buf, bookmark(fmt.Sprint(10+w.p.total), false)), nil
	}
}

func TestP12_UndecodableObjectIsReportedAndStreamContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := source.Change[string]{Type: object.Undecodable, Err: errors.New("half a pod"),
			Item: object.Item[string]{Key: "ns/bad", Version: "11"}}
		s := &script{lists: []reply{{version: "10", end: io.EOF}},
			watches: []reply{{changes: []source.Change[string]{bad, put("a", "12")}}}}
		var seen []reflector.Problem
		r, c, _ := start(t, s, func(o *reflector.Options[string]) {
			o.OnProblem = func(p reflector.Problem) { seen = append(seen, p) }
		})
		runFor(t, r, time.Second)
		// The bookmark tells the sink that the version of the undecodable object was reached.
		same(t, "pushed", c.got, []string{"ReplaceBegin", "ReplaceEnd@10", "Bookmark@11", "Updated a@12"})
		if len(seen) != 1 || seen[0].Doing != "decode" || seen[0].Key != "ns/bad" ||
			!strings.Contains(seen[0].Err.Error(), "things") {
			t.Errorf("problems = %+v", seen)
		}
		if h := r.Health(); h.Undecodable != 1 || h.Version != "12" {
			t.Errorf("health = %+v", h)
		}
	})
}

func TestP12_UndecodableObjectOfInitialStateIsPassedOn(t *testing.T) {
	broken := errors.New("half a pod")
	s := &script{initialState: true, watches: []reply{{changes: []source.Change[string]{
		{Type: object.Undecodable, Err: broken, Item: object.Item[string]{Key: "ns/bad", Version: "5"}}, bookmark("10",
			true)}}}}
	var got []object.Delta[string]
	r, err := reflector.New(reflector.Options[string]{Source: s, Sink: keep{&got}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for range 2 {
		if _, err := r.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != 3 || got[1].Type != object.Replaced || got[1].Item.Key != "ns/bad" {
		t.Fatalf("deltas = %+v", got)
	}
	if _, err := got[1].Item.Object(); !errors.Is(err, broken) {
		t.Errorf("the item's object: %v", err)
	}
}

type keep struct{ to *[]object.Delta[string] }

func (k keep) Push(_ context.Context, d []object.Delta[string]) error {
	*k.to = append(*k.to, d...)
	return nil
}

func TestErrorOfSinkEndsRun(t *testing.T) {
	s := &script{lists: []reply{{version: "10", end: io.EOF}}}
	closed := errors.New("closed")
	r, err := reflector.New(reflector.Options[string]{Source: s, Sink: sinkFunc(func() error { return closed })})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context()); !errors.Is(err, closed) {
		t.Errorf("Run = %v", err)
	}
}

type sinkFunc func() error

func (f sinkFunc) Push(context.Context, []object.Delta[string]) error { return f() }

func TestRunResumesAtVersionReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{lists: []reply{{version: "10", end: io.EOF}},
			watches: []reply{{changes: []source.Change[string]{put("a", "11")}}, {}}}
		r, _, _ := start(t, s, nil)
		runFor(t, r, time.Second)
		runFor(t, r, time.Second)
		same(t, "asked", s.asked, []string{"list newest", `watch "10"`, `watch "11"`})
	})
}

func TestOptionsWithoutSourceOrSinkAreRejected(t *testing.T) {
	_, err := reflector.New(reflector.Options[string]{Sink: &collector{}})
	if err == nil || !strings.Contains(err.Error(), "Options.Source is nil") {
		t.Errorf("no source: %v", err)
	}
	_, err = reflector.New(reflector.Options[string]{Source: &script{}})
	if err == nil || !strings.Contains(err.Error(), "Options.Sink is nil") {
		t.Errorf("no sink: %v", err)
	}
}

// Time that a list spends in the sink does not count as silence of the source.
func TestSlowSinkDoesNotCountAsSilentSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{lists: []reply{{version: "10", items: []string{"a@1"}, end: io.EOF}}, watches: []reply{{}}}
		slow := sinkFunc(func() error { time.Sleep(5 * time.Minute); return nil })
		r, err := reflector.New(reflector.Options[string]{Source: s, Sink: slow})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 16*time.Minute)
		defer cancel()
		if err := r.Run(ctx); err != nil {
			t.Fatal(err)
		}
		same(t, "asked", s.asked, []string{"list newest", `watch "10"`})
	})
}

func TestStateIsListedAgainAfterSinkFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{lists: []reply{{version: "10", end: io.EOF}, {version: "12", end: io.EOF}},
			watches: []reply{{changes: []source.Change[string]{put("a", "11")}}, {}}}
		full, c := errors.New("full"), &collector{}
		refuse := false
		r, err := reflector.New(reflector.Options[string]{Source: s,
			Sink: pushFunc(func(ctx context.Context, d []object.Delta[string]) error {
				if refuse = !refuse && d[0].Type == object.Updated; refuse {
					return full
				}
				return c.Push(ctx, d)
			})})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Run(t.Context()); !errors.Is(err, full) {
			t.Fatalf("Run = %v", err)
		}
		runFor(t, r, time.Second)
		same(t, "asked", s.asked, []string{"list newest", `watch "10"`, "list since 11", `watch "12"`})
	})
}

type pushFunc func(context.Context, []object.Delta[string]) error

func (f pushFunc) Push(ctx context.Context, d []object.Delta[string]) error { return f(ctx, d) }
