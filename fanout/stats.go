package fanout

import (
	"time"

	"github.com/mirador-k8s/mirador/object"
)

// Stats says how a handler is doing.
type Stats struct {
	// Backlog is how many events wait, the one that is being delivered included.
	// Of a state that is being replayed only what was read of it counts.
	Backlog int
	// Delivered counts the callbacks that have ended, Coalesced the events that
	// were merged into others, Panics the callbacks that did not return.
	Delivered, Coalesced, Panics uint64
	// LastSeq is the batch up to which everything was delivered; 0 until a late
	// join has been given its state.
	LastSeq uint64
	// Running is how long the callback that is running has been doing so, and
	// RunningKey what it was called for; zero while none is. Where quick callbacks
	// went before, up to 31 of them, and 32 microseconds, may be in it.
	Running    time.Duration
	RunningKey object.Key
	// OldestWaiting is how long ago the oldest event that waits, or is being
	// delivered, was published.
	OldestWaiting time.Duration
}

// Stats may be asked for at any time, also when the handler is stuck.
func (s *Subscription[T]) Stats() Stats {
	s.fan.mu.Lock()
	end := s.fan.tail.start
	s.fan.mu.Unlock()

	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.fan.now()
	st := Stats{Coalesced: s.coalesced, Panics: s.panics.Load()}
	if s.replay == replayNone || s.replay == replayFailed {
		st.LastSeq = s.lastSeq
	}
	// Delivered first: the work in hand can then only look longer than it is.
	st.Delivered = s.delivered.Load()
	if left := int64(s.target.Load() - st.Delivered); left > 0 {
		st.Backlog = int(left)
	}
	var oldest int64
	if s.busy {
		oldest = s.busySince
	}
	if first := s.pending.first; first != nil {
		st.Backlog += s.pending.events
		if oldest == 0 {
			oldest = first.at
		}
	}
	if s.cursor != nil {
		// Never negative: the cursor may be ahead of what was the end above.
		st.Backlog += max(0, int(int64(end-s.cursor.start)))
		if oldest == 0 && s.cursor.next.Load() != nil {
			oldest = s.cursor.at
		}
	}
	if oldest > 0 {
		st.OldestWaiting = time.Duration(now - oldest)
	}
	if at := len(s.work) - int(int64(s.target.Load()-st.Delivered)); at >= 0 && at < len(s.work) {
		st.RunningKey = s.work[at].Key
		st.Running = time.Duration(now - s.started.Load())
	}
	return st
}
