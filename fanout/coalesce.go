package fanout

import "github.com/mirador-k8s/mirador/object"

// pending holds the coalesced events of a handler that has fallen behind: the latest
// state of each key, in the order in which the keys began to wait.
type pending[T any] struct {
	byKey       map[object.Key]*entry[T]
	first, last *entry[T]
	events      int    // the number of events in all entries
	folded      uint64 // the sequence number of the last batch folded in
}

// entry holds the pending events of one key: a delete, or the latest state, or both if
// the object that the handler knows was replaced by another.
type entry[T any] struct {
	key object.Key
	seq uint64 // the sequence number of the first event folded in
	at  int64  // when that event was published

	// seen is the state that the handler saw last; wasSeen is false if the handler does not
	// know the object. If uncertain is true, seen may be newer than what the handler saw: it
	// was taken from a Deleted event, whose Old is the last state before the delete.
	wasSeen, uncertain bool
	seen               T
	seenUID            string

	hasDeleted, hasState bool
	slots                [2]object.Event[T] // 0: the Deleted event; 1: the Added, Updated or Resynced event

	prev, next *entry[T]
}

// events returns the events to deliver.
func (e *entry[T]) events() []object.Event[T] {
	from, to := 1, 1
	if e.hasDeleted {
		from = 0
	}
	if e.hasState {
		to = 2
	}
	return e.slots[from:to]
}

// fold merges an event into the entry of its key and returns by how many events the
// number of pending events is smaller than without merging.
func (p *pending[T]) fold(ev *object.Event[T], seq uint64, at int64) (merged uint64) {
	if ev.Type < object.Added || ev.Type > object.Resynced {
		return 1 // drop events without a valid type
	}
	e := p.byKey[ev.Key]
	before := 0
	if e == nil {
		e = &entry[T]{key: ev.Key, seq: seq, at: at}
		if ev.Type != object.Added {
			e.wasSeen, e.seen, e.seenUID, e.uncertain = true, ev.Old, ev.OldUID, ev.Type == object.Deleted
		}
		p.link(e)
	} else {
		before = len(e.events())
	}
	switch ev.Type {
	case object.Deleted:
		e.foldDeleted(ev)
	case object.Resynced:
		e.foldResynced(ev)
	default:
		e.foldState(ev)
	}
	after := len(e.events())
	if after == 0 {
		p.unlink(e)
	}
	p.events += after - before
	return uint64(before + 1 - after)
}

// foldDeleted drops the pending state. If the handler knows the object, a Deleted event is
// pending afterwards: this one, or an earlier one if the object was replaced meanwhile.
func (e *entry[T]) foldDeleted(ev *object.Event[T]) {
	e.hasState, e.slots[1] = false, object.Event[T]{}
	if e.wasSeen && !e.hasDeleted {
		e.hasDeleted, e.slots[0] = true, *ev
	}
}

// foldResynced keeps a resync only if no other event of the object is pending.
func (e *entry[T]) foldResynced(ev *object.Event[T]) {
	if e.hasDeleted || e.hasState && e.slots[1].Type != object.Resynced {
		return
	}
	e.hasState, e.slots[1] = true, *ev
}

// foldState replaces the pending state by a newer one and sets its type and Old relative to
// the state that the handler saw last.
func (e *entry[T]) foldState(ev *object.Event[T]) {
	initial, unchanged := ev.Initial, ev.Unchanged && !e.hasDeleted
	if e.hasState {
		initial, unchanged = e.slots[1].Initial, unchanged && e.slots[1].Unchanged
	}
	if e.hasDeleted && !e.hasState && !e.uncertain && object.SameObject(e.slots[0].OldUID, ev.NewUID) {
		e.hasDeleted, e.slots[0] = false, object.Event[T]{} // the same object is back
	}
	state := *ev
	if e.wasSeen && !e.hasDeleted {
		state.Type, state.Initial, state.Unchanged = object.Updated, false, unchanged
		state.Old, state.OldUID = e.seen, e.seenUID
	} else {
		var none T
		state.Type, state.Initial, state.Unchanged = object.Added, initial, false
		state.Old, state.OldUID = none, ""
	}
	state.Missed = false
	e.hasState, e.slots[1] = true, state
}

func (p *pending[T]) link(e *entry[T]) {
	if p.byKey == nil {
		p.byKey = make(map[object.Key]*entry[T])
	}
	p.byKey[e.key] = e
	e.prev = p.last
	if p.last == nil {
		p.first = e
	} else {
		p.last.next = e
	}
	p.last = e
}

func (p *pending[T]) unlink(e *entry[T]) {
	delete(p.byKey, e.key)
	if e.prev == nil {
		p.first = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		p.last = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
}

// pop removes and returns the entry that has waited longest, or nil.
func (p *pending[T]) pop() *entry[T] {
	e := p.first
	if e == nil {
		return nil
	}
	p.unlink(e)
	p.events -= len(e.events())
	return e
}

// absorb is called by the publisher if the handler's backlog may be too large, or is
// being coalesced already. It folds the chain up to end, which is empty, into the pending
// events. The batch that the handler is processing is not folded: the handler will have
// seen all of it before it sees the pending events.
func (s *Subscription[T]) absorb(end *node[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cursor == nil {
		return
	}
	if s.replay == replayAsked {
		return // it is not known yet which batches the state contains
	}
	if !s.coalescing.Load() {
		counted := s.cursor
		if next := counted.next.Load(); !s.busy && next != nil {
			counted = next // the handler is about to begin the first batch
		}
		if int64(end.start-counted.start) <= s.maxBacklog {
			return
		}
		s.coalescing.Store(true)
		if s.resync != nil {
			// Its place in the chain is folded now. Take the state again later.
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
	r := stateReader[T]{}
	for ev := range n.state {
		ev = r.toEvent(ev)
		s.coalesced += s.pending.fold(&ev, n.seq, n.at)
	}
}
