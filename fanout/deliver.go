package fanout

import (
	"time"

	"github.com/mirador-k8s/mirador/object"
)

// turn delivers one batch or one piece of a state, and reports whether more events are ready to be delivered: the
// handler then needs another turn. Other handlers have their turn first, while the batch is still in the processor's
// cache. The comment of runQueue explains the states of the handler.
//
// There is one deferred function per batch and one atomic operation per callback, because their cost is paid for
// every event and handler. All progress is kept in the subscription, so that another goroutine can continue if a
// callback panics or ends this one.
func (s *Subscription[T]) turn() (more bool) {
	calling, ended := false, false
	defer func() {
		if ended {
			return
		}
		defer func() { // deferred, because the functions that failed calls may end the goroutine too
			if !s.crashing {
				s.start() // continue with the next event
			}
		}()
		if calling {
			s.delivered.Add(1)
			s.failed(s.work[s.next-1].Key, recover())
		}
	}()
	for delivered := false; ; {
		s.activity.Store(running)
		for s.take() {
			if delivered {
				ended = true
				s.activity.Store(notified)
				return true
			}
			s.skipClock = 0
			for s.next < len(s.work) && !s.removed.Load() {
				ev := &s.work[s.next]
				s.next++
				if s.skipClock > 0 {
					s.skipClock--
				} else {
					s.readClock()
				}
				calling = true
				s.handle(ev)
				calling = false
				s.delivered.Add(1)
			}
			delivered = true
		}
		if s.removed.Load() {
			ended = true
			s.finish()
			return false
		}
		if s.activity.CompareAndSwap(running, idle) {
			ended = true
			return false // from here on another goroutine may own the subscription
		}
	}
}

const (
	clockStride = 32
	quickStride = 32 * time.Microsecond
)

// readClock records when a callback began. Reading the clock takes as long as calling an
// empty handler, so only one in 32 callbacks of a batch reads it while callbacks are quick.
func (s *Subscription[T]) readClock() {
	now := s.fan.now()
	if now-s.started.Swap(now) < int64(quickStride) {
		s.skipClock = clockStride - 1
	}
}

// task is what a runner does next for a handler.
type task int

const (
	nothing    task = iota
	haveWork        // deliver s.work
	askResync       // take the state for a resync
	readEvents      // read the next piece of a state
)

// take fills s.work with the next events and reports whether there are any. Only the
// runner that has the handler calls it.
func (s *Subscription[T]) take() bool {
	if s.next < len(s.work) && !s.removed.Load() {
		return true // left over by a callback that panicked or ended its goroutine
	}
	for {
		switch s.choose() {
		case nothing:
			return false
		case haveWork:
			return true
		case askResync:
			s.takeResync()
		case readEvents:
			if s.readState() {
				return true
			}
		}
	}
}

// choose drops the work that was delivered and decides what comes next, in this order:
// the rest of a state, coalesced events, a due resync, the chain.
func (s *Subscription[T]) choose() task {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work, s.next = nil, 0
	if s.removed.Load() {
		return nothing
	}
	if s.reader != nil {
		s.busy, s.busySince = true, 0
		return readEvents
	}
	if s.resync == nil {
		s.resyncing = false // it was delivered, or State panicked
	}
	s.busy = false
	s.advance()
	if s.coalescing.Load() {
		if e := s.pending.pop(); e != nil {
			s.begin(e.events(), e.at)
			return haveWork
		}
		s.coalescing.Store(false)
		s.pending = pending[T]{}
	}
	s.checkSynced()
	if s.due && s.resync == nil {
		return askResync
	}
	return s.followChain()
}

// advance updates lastSeq, the sequence number up to which everything was delivered.
func (s *Subscription[T]) advance() {
	s.lastSeq = max(s.lastSeq, s.workSeq)
	if !s.coalescing.Load() {
		return
	}
	if first := s.pending.first; first != nil {
		s.lastSeq = max(s.lastSeq, first.seq-1)
	} else {
		s.lastSeq = max(s.lastSeq, s.pending.folded)
	}
	s.checkSynced()
}

// checkSynced fires synced if the initial state is complete and was delivered.
func (s *Subscription[T]) checkSynced() {
	mark := s.fan.mark.Load()
	if mark > 0 && s.lastSeq+1 >= mark && s.replay == replayNone && !s.HasSynced() {
		s.synced.fire()
	}
}

// followChain takes the next batch or state from the chain, or starts a resync whose
// place in the chain is reached.
func (s *Subscription[T]) followChain() task {
	for {
		// The order matters: a batch is linked before lastSeq is stored, so all batches up
		// to published are visible in the chain.
		published := s.fan.lastSeq.Load()
		n := s.cursor
		end := n.next.Load()
		if r := s.resync; r != nil && (end == nil && published >= r.seq || end != nil && n.seq > r.seq) {
			s.reader, s.resync = r, nil
			s.awaitsSeq.Store(false)
			s.busy, s.busySince = true, 0
			return readEvents
		}
		if end == nil {
			return nothing
		}
		s.moveTo(end)
		if n.seq <= s.skip {
			continue
		}
		if n.state != nil {
			s.reader = &stateReader[T]{seq: n.seq, events: n.state, piece: firstPiece}
			s.busy, s.busySince = true, n.at
			return readEvents
		}
		s.workSeq = n.seq
		s.begin(n.events, n.at)
		return haveWork
	}
}

func (s *Subscription[T]) moveTo(n *node[T]) {
	s.cursor = n
	s.position.Store(n.start)
}

// begin makes events the current work. at is when they were published, or 0.
func (s *Subscription[T]) begin(events []object.Event[T], at int64) {
	s.busy, s.busySince = true, at
	s.work, s.next = events, 0
	s.target.Store(s.delivered.Load() + uint64(len(events)))
}
