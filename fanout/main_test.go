package fanout_test

import (
	"fmt"
	"iter"
	"os"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/mirador-k8s/mirador/fanout"
	"github.com/mirador-k8s/mirador/object"
)

func TestMain(m *testing.M) {
	if os.Getenv("FANOUT_TEST_CRASH") != "" {
		crash()
	}
	goleak.VerifyTestMain(m)
}

type (
	event = object.Event[int]
	fan   = fanout.Fanout[int]
	sub   = fanout.Subscription[int]
	opts  = fanout.HandlerOptions[int]
)

func add(key string, v int) event {
	return event{Type: object.Added, Key: object.Key(key), New: v, NewUID: "u"}
}

func update(key string, old, v int) event {
	return event{Type: object.Updated, Key: object.Key(key), Old: old, New: v, OldUID: "u", NewUID: "u"}
}

func remove(key string, old int) event {
	return event{Type: object.Deleted, Key: object.Key(key), Old: old, OldUID: "u"}
}

func initial(e event) event { e.Initial = true; return e }

// uids sets the UIDs of an event.
func uids(e event, old, now string) event { e.OldUID, e.NewUID = old, now; return e }

// text abbreviates an event: "+a 1", "~a 1>2", "-a 2", "=a 2", with ! for initial and ? for missed.
func text(e event) string {
	s := ""
	switch e.Type {
	case object.Added:
		s = fmt.Sprintf("+%s %d", e.Key, e.New)
	case object.Updated:
		s = fmt.Sprintf("~%s %d>%d", e.Key, e.Old, e.New)
	case object.Deleted:
		s = fmt.Sprintf("-%s %d", e.Key, e.Old)
	case object.Resynced:
		s = fmt.Sprintf("=%s %d", e.Key, e.New)
		if e.Old != e.New || e.OldUID != e.NewUID {
			s += " with another old"
		}
	}
	if e.Initial {
		s += "!"
	}
	if e.Missed {
		s += "?"
	}
	return s
}

// recorder is a handler that records each event as text.
type recorder struct {
	mu  sync.Mutex
	got []string
}

func (r *recorder) handle(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, text(e))
}

func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.got...)
}

// gate is a handler that blocks in each callback until the test sends to leave.
type gate struct {
	recorder
	entered chan object.Key
	leave   chan struct{}
}

func newGate() *gate { return &gate{entered: make(chan object.Key), leave: make(chan struct{})} }

func (g *gate) handle(e event) {
	g.entered <- e.Key
	<-g.leave
	g.recorder.handle(e)
}

// open ends the current callback and makes all later ones return at once. Call shut afterwards.
func (g *gate) open() {
	go func() {
		for range g.entered {
		}
	}()
	close(g.leave)
}

func (g *gate) shut() { close(g.entered) }

// join adds a handler and marks the initial state as complete.
func join(t testing.TB, f *fan, o opts) *sub {
	t.Helper()
	s := joinEarly(t, f, o)
	f.MarkSynced(0)
	return s
}

// joinEarly adds a handler before the initial state is complete.
func joinEarly(t testing.TB, f *fan, o opts) *sub {
	t.Helper()
	s, err := f.Join(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func stop(t testing.TB, f *fan) {
	t.Helper()
	if err := f.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func events(list ...event) iter.Seq[event] {
	return func(yield func(event) bool) {
		for _, e := range list {
			if !yield(e) {
				return
			}
		}
	}
}

// state returns a Replay function with fixed objects and a fixed sequence number.
func state(seq uint64, list ...event) func() fanout.Replay[int] {
	return func() fanout.Replay[int] { return fanout.Replay[int]{Seq: seq, Events: events(list...)} }
}
