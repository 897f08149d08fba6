package store

// reclaim takes back the snapshot of the last batch if no reader has taken it. If a reader has, all nodes are shared
// from now on, and the new epoch copies them before it edits them. Readers continue with that snapshot; its state
// tells them that a batch is open.
func (w *Writer[T]) reclaim() {
	if s := w.sh.latest.Load(); !s.state.CompareAndSwap(available, reclaimed) {
		s.state.Store(outdated)
		w.epoch++
	}
}

// keepLatest keeps the state of the last batch readable during a long change: no reader waits, and each node that is
// edited is copied.
func (w *Writer[T]) keepLatest() {
	w.sh.latest.Load().state.CompareAndSwap(available, taken)
	w.epoch++
}

// publish makes the current state the latest snapshot.
func (w *Writer[T]) publish() {
	w.sh.length.Store(int64(w.objects.n))
	w.sh.set.Store(w.set)
	s := w.sh.latest.Load()
	if s.state.Load() != reclaimed {
		s = &Snapshot[T]{}
	}
	s.cfg, s.seq, s.version, s.set = w.sh.cfg, w.seq, w.version, w.set
	s.objects, s.keys, s.words = w.objects, w.keys, w.words
	s.roots = append(s.roots[:0], w.roots...)
	if w.sh.waiting.Load() > 0 {
		s.state.Store(taken)
	} else {
		s.state.Store(available)
	}
	if w.sh.latest.Load() != s {
		w.sh.latest.Store(s)
	}
	w.sh.wakeAll()
}
