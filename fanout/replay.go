package fanout

import (
	"iter"
	"runtime"

	"github.com/mirador-k8s/mirador/object"
)

// stateReader reads a Replay piece by piece. It pulls, so that a callback that
// ends its goroutine does not end the iteration with it.
type stateReader[T any] struct {
	seq    uint64
	events iter.Seq[object.Event[T]]
	resync bool

	pull     func() (object.Event[T], bool)
	stopPull func()
	piece    int // how much to read at a time
	failed   bool
}

// How much of a state is read at a time. Handlers that keep together yield after each piece. Ten that were given
// 10,000 packed objects, of which the store keeps 256 decoded, had 97,000 decoded without yielding, up to 80,000 with
// pieces of 128 and 13,000 to 40,000 with pieces of 32: those who are not too far behind find what the first had to
// decode, and catch up.
const (
	firstPiece    = 8
	maxPiece      = 128
	togetherPiece = 32
)

// takeReplay asks for the state of a late join.
func (s *Subscription[T]) takeReplay(state func() Replay[T]) {
	r := s.ask(state)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r == nil {
		s.replay = replayFailed
		return
	}
	s.replay, s.skip, s.reader = replayGiven, r.seq, r
}

// takeResync asks for the state of a resync. It is delivered when everything up
// to it is.
func (s *Subscription[T]) takeResync() {
	s.mu.Lock()
	s.due, s.resyncing = false, true
	s.mu.Unlock()
	r := s.ask(s.state)
	if r == nil {
		return
	}
	r.resync = true
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.removed.Load():
	case s.coalescing.Load():
		s.due = true // too much has come meanwhile
	default:
		s.resync = r
		s.awaitsSeq.Store(true)
	}
}

// ask calls a function that gives a state; nil means that it panicked.
func (s *Subscription[T]) ask(state func() Replay[T]) (r *stateReader[T]) {
	defer s.catch()
	got := state()
	if got.Events == nil {
		got.Events = func(func(object.Event[T]) bool) {}
	}
	return &stateReader[T]{seq: got.Seq, events: got.Events, piece: firstPiece}
}

// readState puts the next piece of the state into hand. At the end of the state
// it closes it and reports false.
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

func (s *Subscription[T]) read(r *stateReader[T]) (work []object.Event[T]) {
	if r.failed {
		return nil
	}
	// A panic, or the end of the goroutine, leaves failed set. What was read
	// before a panic is delivered.
	r.failed = true
	defer s.catch()
	if r.pull == nil {
		r.pull, r.stopPull = iter.Pull(r.events)
	}
	// A new slice each time: Stats may look at an event after it was delivered.
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
		work = append(work, r.shape(ev))
	}
	r.failed = false
	return work
}

// shape makes an object of the state an event of the right kind.
func (r *stateReader[T]) shape(ev object.Event[T]) object.Event[T] {
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
