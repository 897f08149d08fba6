package reflector

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
)

// State says what a reflector is doing.
type State uint8

const (
	// Starting: nothing has been asked yet.
	Starting State = iota
	// Listing: the state is being read.
	Listing
	// Streaming: the state is known and changes are followed.
	Streaming
	// Retrying: the last attempt failed and another will follow.
	Retrying
	// NotServed: the source does not have this resource now.
	NotServed
	// Polling: the state is known, and listed anew from time to time, because the source
	// may be listed and refuses to be watched. Err says why; NextTry is when the next list
	// is due.
	Polling
	// Stopped: Run has returned.
	Stopped
)

var stateNames = [...]string{"starting", "listing", "streaming", "retrying", "not served", "polling", "stopped"}

// String gives the state in words.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Health is what can be said of a reflector at one moment.
type Health struct {
	State State
	// Since is when the state was entered.
	Since time.Time
	// Version is how far the source's history has been read.
	Version object.Version
	// LastWord is when the source last said anything at all; zero if it never did.
	LastWord time.Time
	// Err is the last failure, nil once a stream lives again.
	Err error
	// Failures counts the failures in a row, NextTry is when the next attempt is due.
	Failures int
	NextTry  time.Time
	// Lists and Watches count what was opened since the start, Retries the waits
	// because of a failure, Epochs how often history was set back.
	Lists, Watches, Retries, Epochs uint64
	// Silences counts the watches that were closed because the source said nothing on
	// them for too long.
	Silences uint64
	// Errors counts failures by reason.
	Errors map[source.Reason]uint64
	// Undecodable counts objects that could not be read.
	Undecodable uint64
	// Stale counts changes that were older than what the stream had told already,
	// and dropped.
	Stale uint64
	// InitialState says whether the last state came by a watch rather than a list.
	InitialState bool
}

// Age is how long ago the source last said anything, as of now. It is zero
// while the source has never said anything.
func (h Health) Age(now time.Time) time.Duration {
	if h.LastWord.IsZero() {
		return 0
	}
	return now.Sub(h.LastWord)
}

// board is the health as the reflector writes it and others read it.
type board struct {
	mu sync.Mutex
	h  Health
}

func (b *board) read() Health {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.h
	h.Errors = make(map[source.Reason]uint64, len(b.h.Errors))
	maps.Copy(h.Errors, b.h.Errors)
	return h
}

func (b *board) update(f func(h *Health)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(&b.h)
}

func (b *board) enter(s State) {
	b.update(func(h *Health) {
		if h.State != s {
			h.State, h.Since = s, time.Now()
		}
	})
}
