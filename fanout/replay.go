package fanout

import (
	"iter"
	"runtime"

	"github.com/mirador-k8s/mirador/object"
)

// stateReader reads a state piece by piece. It uses iter.Pull, so that a callback that ends
// its goroutine does not end the iteration.
type stateReader[T any] struct {
	seq    uint64
	events iter.Seq[object.Event[T]]
	resync bool

	pull     func() (object.Event[T], bool)
	stopPull func()
	piece    int // the size of the next piece
	failed   bool
}

// The number of objects of a state that are read at a time: at first, at most, and at most with Options.Together.
// With Together, a handler yields after each piece. Small pieces keep the handlers so close together that most of
// them find an object still decoded, after the first handler had it decoded.
const (
	firstPiece    = 8
	maxPiece      = 128
	togetherPiece = 32
)

// takeReplay takes the state for a late join.
func (s *Subscription[T]) takeReplay(state func() Replay[T]) {
	r := s.openState(state)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r == nil {
		s.replay = replayFailed
		return
	}
	s.replay, s.skip, s.reader = replayGiven, r.seq, r
}

// takeResync takes the state for a resync. It is delivered once everything up to its
// sequence number was delivered.
func (s *Subscription[T]) takeResync() {
	s.mu.Lock()
	s.due, s.resyncing = false, true
	s.mu.Unlock()
	r := s.openState(s.state)
	if r == nil {
		return
	}
	r.resync = true
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.removed.Load():
	case s.coalescing.Load():
		s.due = true // the handler fell behind meanwhile: try again when it has caught up
	default:
		s.resync = r
		s.awaitsSeq.Store(true)
	}
}

// openState calls a Replay or State function. It returns nil if the function panicked.
func (s *Subscription[T]) openState(state func() Replay[T]) (r *stateReader[T]) {
	defer s.catch()
	got := state()
	if got.Events == nil {
		got.Events = func(func(object.Event[T]) bool) {}
	}
	return &stateReader[T]{seq: got.Seq, events: got.Events, piece: firstPiece}
}

// readState makes the next piece of the state the current work. At the end of the state
// it closes the reader and returns false.
func (s *Subscription[T]) readState() bool {
	r := s.reader
	if s.fan.opts.Together {
		runtime.Gosched()
	}
	work := s.read(r)
	if len(work) > 0 {
		s.mu.Lock()
		s.begin(work, 0)
		s.mu.Unlock()
		return true
	}
	r.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reader = nil
	switch {
	case r.resync:
	case r.failed:
		s.replay = replayFailed
	default:
		s.replay = replayNone
		s.lastSeq = max(s.lastSeq, r.seq)
	}
	return false
}

// read returns the next piece of a state; it is empty at the end or after a failure.
func (s *Subscription[T]) read(r *stateReader[T]) (work []object.Event[T]) {
	if r.failed {
		return nil
	}
	// failed stays true if the iterator panics or ends the goroutine. Objects that were
	// read before a panic are delivered.
	r.failed = true
	defer s.catch()
	if r.pull == nil {
		r.pull, r.stopPull = iter.Pull(r.events)
	}
	// The slice is not reused, because Stats may read an event after it was delivered.
	work = make([]object.Event[T], 0, r.piece)
	most := maxPiece
	if s.fan.opts.Together {
		most = togetherPiece
	}
	r.piece = min(2*r.piece, most)
	for len(work) < cap(work) {
		ev, ok := r.pull()
		if !ok {
			break
		}
		work = append(work, r.toEvent(ev))
	}
	r.failed = false
	return work
}

// toEvent sets the type and the marks of an object of the state.
func (r *stateReader[T]) toEvent(ev object.Event[T]) object.Event[T] {
	if r.resync {
		ev.Type, ev.Initial = object.Resynced, false
		ev.Old, ev.OldUID = ev.New, ev.NewUID
	} else {
		var none T
		ev.Type, ev.Initial = object.Added, true
		ev.Old, ev.OldUID = none, ""
	}
	ev.Missed = false
	return ev
}

func (r *stateReader[T]) stop() {
	if r.stopPull != nil {
		r.stopPull()
	}
}
