package fanout

import "github.com/mirador-k8s/mirador/object"

// pending is what waits for a handler that is too far behind: for each key the
// latest state, in the order in which the keys came.
type pending[T any] struct {
	byKey       map[object.Key]*entry[T]
	first, last *entry[T]
	events      int    // how many events the entries amount to
	folded      uint64 // the last batch that was folded in
}

// entry is what waits for one key: a Delete, or what became of the object, or
// both where the object that the handler knows has been replaced by another.
type entry[T any] struct {
	key object.Key
	seq uint64 // the batch of the first event folded in
	at  int64  // when that was published

	// What the handler saw last; it knows nothing of the object where wasSeen is
	// false. Where vague is true it is not known which state that was: a Delete
	// carries the last state, which may be later than the last one that was told.
	wasSeen, vague bool
	seen           T
	seenUID        string

	hasDelete, hasPut bool
	slots             [2]object.Event[T] // the Delete, the Add, Update or Resynced

	prev, next *entry[T]
}

// events gives what is to be delivered.
func (e *entry[T]) events() []object.Event[T] {
	from, to := 1, 1
	if e.hasDelete {
		from = 0
	}
	if e.hasPut {
		to = 2
	}
	return e.slots[from:to]
}

// fold adds an event and says how many events were saved by that.
func (p *pending[T]) fold(ev *object.Event[T], seq uint64, at int64) (merged uint64) {
	if ev.Type < object.Added || ev.Type > object.Resynced {
		return 1 // an event without a type means nothing
	}
	e := p.byKey[ev.Key]
	before := 0
	if e == nil {
		e = &entry[T]{key: ev.Key, seq: seq, at: at}
		if ev.Type != object.Added {
			e.wasSeen, e.seen, e.seenUID, e.vague = true, ev.Old, ev.OldUID, ev.Type == object.Deleted
		}
		p.link(e)
	} else {
		before = len(e.events())
	}
	switch ev.Type {
	case object.Deleted:
		e.foldDelete(ev)
	case object.Resynced:
		e.foldResynced(ev)
	default:
		e.foldPut(ev)
	}
	after := len(e.events())
	if after == 0 {
		p.unlink(e)
	}
	p.events += after - before
	return uint64(before + 1 - after)
}

// foldDelete: whatever became of the object is over. If the handler knew it, it
// hears of the delete; of one object that is replaced by another, the delete
// that waits already is the one that counts.
func (e *entry[T]) foldDelete(ev *object.Event[T]) {
	e.hasPut, e.slots[1] = false, object.Event[T]{}
	if e.wasSeen && !e.hasDelete {
		e.hasDelete, e.slots[0] = true, *ev
	}
}

// foldResynced: an object given again is news only where nothing else waits.
func (e *entry[T]) foldResynced(ev *object.Event[T]) {
	if e.hasDelete || e.hasPut && e.slots[1].Type != object.Resynced {
		return
	}
	e.hasPut, e.slots[1] = true, *ev
}

// foldPut: the new state, told relative to what the handler saw last.
func (e *entry[T]) foldPut(ev *object.Event[T]) {
	initial, unchanged := ev.Initial, ev.Unchanged && !e.hasDelete
	if e.hasPut {
		initial, unchanged = e.slots[1].Initial, unchanged && e.slots[1].Unchanged
	}
	if e.hasDelete && !e.hasPut && !e.vague && object.SameObject(e.slots[0].OldUID, ev.NewUID) {
		e.hasDelete, e.slots[0] = false, object.Event[T]{} // it never went away
	}
	put := *ev
	if e.wasSeen && !e.hasDelete {
		put.Type, put.Initial, put.Unchanged = object.Updated, false, unchanged
		put.Old, put.OldUID = e.seen, e.seenUID
	} else {
		var none T
		put.Type, put.Initial, put.Unchanged = object.Added, initial, false
		put.Old, put.OldUID = none, ""
	}
	put.Missed = false
	e.hasPut, e.slots[1] = true, put
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

// pop takes the entry that has waited longest, or nil.
func (p *pending[T]) pop() *entry[T] {
	e := p.first
	if e == nil {
		return nil
	}
	p.unlink(e)
	p.events -= len(e.events())
	return e
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
