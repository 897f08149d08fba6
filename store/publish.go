package store

// withdraw takes back the snapshot of the last batch if no reader has it. If one
// has, all nodes are shared from now on: the next epoch copies before it edits. Readers go on with that
// state, and know by it that the writer is at work.
func (w *Writer[T]) withdraw() {
	if s := w.sh.offer.Load(); !s.state.CompareAndSwap(offered, withdrawn) {
		s.state.Store(passing)
		w.epoch++
	}
}

// hold makes the state of the last batch readable throughout a long change: no
// reader waits, at the price of copying each node that is edited.
func (w *Writer[T]) hold() {
	w.sh.offer.Load().state.CompareAndSwap(offered, taken)
	w.epoch++
}

// publish offers the state as it is now.
func (w *Writer[T]) publish() {
	w.sh.length.Store(int64(w.objects.n))
	w.sh.set.Store(w.set)
	s := w.sh.offer.Load()
	if s.state.Load() != withdrawn {
		s = &Snapshot[T]{}
	}
	s.cfg, s.seq, s.version, s.set = w.sh.cfg, w.seq, w.version, w.set
	s.objects, s.keys, s.words = w.objects, w.keys, w.words
	s.roots = append(s.roots[:0], w.roots...)
	if w.sh.waiting.Load() > 0 {
		s.state.Store(taken)
	} else {
		s.state.Store(offered)
	}
	if w.sh.offer.Load() != s {
		w.sh.offer.Store(s)
	}
	w.sh.ring()
}
