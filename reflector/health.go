package reflector

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
)

// State is what a reflector is doing.
type State uint8

const (
	// Starting: nothing has been requested yet.
	Starting State = iota
	// Listing: the state is being read.
	Listing
	// Streaming: the state has been read, and a watch is open.
	Streaming
	// Retrying: the last attempt failed and another will follow.
	Retrying
	// NotServed: the source does not serve this resource at present.
	NotServed
	// Polling: the state has been read and is listed periodically, because the source
	// allows lists but refuses watches. Err is the reason; NextTry is when the next list
	// is due.
	Polling
	// Stopped: Run has returned.
	Stopped
)

var stateNames = [...]string{"starting", "listing", "streaming", "retrying", "not served", "polling", "stopped"}

// String returns the state as text, such as "streaming" or "not served".
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Health describes a reflector at one moment.
type Health struct {
	State State
	// Since is when the state was entered.
	Since time.Time
	// Version is the version reached in the source's history.
	Version object.Version
	// Restored says that the state is the one of Options.StartAt, and that the source has
	// not confirmed it yet: no watch was opened, and no list was read.
	Restored bool
	// LastEvent is when the source last sent anything; zero if it never did.
	LastEvent time.Time
	// Err is the last failure; nil once a stream has lasted again.
	Err error
	// Failures counts consecutive failures. NextTry is when the next attempt is due.
	Failures int
	NextTry  time.Time
	// Lists and Watches count the lists and watches opened since the start, Retries the
	// waits after a failure, and Epochs how often the source's history was reset.
	Lists, Watches, Retries, Epochs uint64
	// Silences counts the watches that were closed because they were silent for too long.
	Silences uint64
	// Errors counts failures by reason.
	Errors map[source.Reason]uint64
	// Undecodable counts objects that could not be decoded.
	Undecodable uint64
	// Stale counts changes that were dropped because they were older than the version reached.
	Stale uint64
	// InitialState is true if the last state was read from a watch rather than a list.
	InitialState bool
}

// Age returns the last-event age: the time from LastEvent until now. It is zero if the
// source has never sent anything.
func (h Health) Age(now time.Time) time.Duration {
	if h.LastEvent.IsZero() {
		return 0
	}
	return now.Sub(h.LastEvent)
}

// sharedHealth is the health that the reflector writes and other goroutines read.
type sharedHealth struct {
	mu sync.Mutex
	h  Health
}

func (s *sharedHealth) read() Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.h
	h.Errors = make(map[source.Reason]uint64, len(s.h.Errors))
	maps.Copy(h.Errors, s.h.Errors)
	return h
}

func (s *sharedHealth) update(f func(h *Health)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.h)
}

func (s *sharedHealth) enter(state State) {
	s.update(func(h *Health) {
		if h.State != state {
			h.State, h.Since = state, time.Now()
		}
		h.Restored = h.Restored && state != Streaming
	})
}
