package fanout

import "github.com/mirador-k8s/mirador/object"

// What there is to do next for a handler.
type task int

const (
	nothing    task = iota
	haveWork        // events are in hand
	askResync       // the state for a resync is to be taken
	readEvents      // a state is being delivered: read more of it
)

// take puts the next events into hand, and reports whether there are any. Only
// the handler's goroutine calls it.
func (s *Subscription[T]) take() bool {
	if s.next < len(s.work) && !s.removed.Load() {
		return true // left behind by a goroutine that was ended
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

// choose closes the work that was done and decides what comes next: the state
// for a late join; a resync, when everything up to it is delivered; what was
// coalesced; then the chain.
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
		s.resyncing = false // delivered, or it could not be had
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

// advance notes how far the handler has come.
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

// checkSynced closes synced when the initial state is complete and delivered.
func (s *Subscription[T]) checkSynced() {
	mark := s.fan.mark.Load()
	if mark > 0 && s.lastSeq+1 >= mark && s.replay == replayNone && !s.HasSynced() {
		s.synced.happen()
	}
}

func (s *Subscription[T]) followChain() task {
	for {
		// In this order: once lastSeq says that a batch was published, it can be
		// seen in the chain.
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

// begin puts events into hand.
func (s *Subscription[T]) begin(events []object.Event[T], at int64) {
	s.busy, s.busySince = true, at
	s.work, s.next = events, 0
	s.target.Store(s.delivered.Load() + uint64(len(events)))
}

// absorb is called by the publisher when too much may wait for the handler, or
// when what waits is being coalesced. It folds the chain up to end, which is
// empty, into the pending events. The batch in hand stays there: the handler
// will have seen it before it sees what is folded here.
func (s *Subscription[T]) absorb(end *node[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cursor == nil {
		return
	}
	if s.replay == replayAsked {
		return // what the state has is not known yet
	}
	if !s.coalescing.Load() {
		counted := s.cursor
		if next := counted.next.Load(); !s.busy && next != nil {
			counted = next // the handler is about to begin the first one
		}
		if int64(end.start-counted.start) <= s.maxBacklog {
			return
		}
		s.coalescing.Store(true)
		if s.resync != nil {
			// It lies somewhere in what is folded now. Take it again later.
			s.resync, s.due = nil, true
			s.awaitsSeq.Store(false)
		}
	}
	for next := s.cursor.next.Load(); next != nil; next = s.cursor.next.Load() {
		n := s.cursor
		if n.seq > s.skip {
			s.foldNode(n)
		}
		s.pending.folded = n.seq
		s.moveTo(next)
	}
}

// foldNode folds a batch into the pending events.
func (s *Subscription[T]) foldNode(n *node[T]) {
	for i := range n.events {
		s.coalesced += s.pending.fold(&n.events[i], n.seq, n.at)
	}
	if n.state == nil {
		return
	}
	whole := stateReader[T]{}
	for ev := range n.state {
		ev = whole.shape(ev)
		s.coalesced += s.pending.fold(&ev, n.seq, n.at)
	}
}
