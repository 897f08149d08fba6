package fanout

import (
	"time"

	"github.com/mirador-k8s/mirador/object"
)

// Stats describes the progress of a handler at one moment.
type Stats struct {
	// Backlog is the number of events that wait, including the one that is being
	// delivered. Objects of a state count once they were read from it.
	Backlog int
	// Delivered counts finished callbacks, Coalesced the events that were merged into
	// others, and Panics the callbacks that panicked or ended their goroutine.
	Delivered, Coalesced, Panics uint64
	// LastSeq is the sequence number up to which everything was delivered; 0 until a
	// handler that joined late has received its state.
	LastSeq uint64
	// Running is how long the current callback has been running, and RunningKey the key of
	// its event; both are zero if no callback is running. Running may include up to 31
	// quick callbacks before it, 32 microseconds in all.
	Running    time.Duration
	RunningKey object.Key
	// OldestWaiting is how long ago the oldest event of the backlog was published.
	OldestWaiting time.Duration
}

// Stats returns the current progress. It does not wait for a callback.
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
	// Load delivered first, so that the rest of the current work is never counted too short.
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
		// At least 0: the cursor may have passed the end that was read above.
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
