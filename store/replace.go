package store

import "github.com/mirador-k8s/mirador/object"

// replacement is a list on its way in. The objects that the store has already are
// marked in their records; only what is new or changed is held here, as it will be
// stored: so the peak is the final state and what changed.
type replacement[T any] struct {
	mark  uint32
	order []*record[T] // nil where a later item of the list took it back
	table *table[T]    // the records of order by key
	added int          // how many of them the store does not have
}

// BeginReplace opens a whole list: everything that is neither Seen, kept nor staged
// before CommitReplace will be deleted. Readers notice nothing until then.
func (w *Writer[T]) BeginReplace() {
	w.enter("BeginReplace", idle, replacing)
	w.replaces++
	w.replace = &replacement[T]{mark: w.replaces, table: newTable[T](0)}
}

// Seen says that the list has an object in this version. It returns true if that
// is what the store has, and then there is nothing more to do; otherwise the
// object has to be staged, or kept.
func (w *Writer[T]) Seen(key object.Key, version object.Version, uid string) bool {
	w.must("Seen", replacing)
	rec := w.stored(key)
	if rec == nil || version == "" || rec.Version != version || !object.SameObject(rec.UID, uid) {
		return false
	}
	rec.mark = w.replace.mark
	w.replace.unstage(hashKey(w.sh.cfg.seed, key), key)
	return true
}

// Keep says that the list has an object of which no more is known, such as one
// that could not be decoded: what is stored of it stays. It returns false if there
// is nothing of that key.
func (w *Writer[T]) Keep(key object.Key) bool {
	w.must("Keep", replacing)
	if rec := w.stored(key); rec != nil {
		rec.mark = w.replace.mark
		return true
	}
	return w.replace.table.get(hashKey(w.sh.cfg.seed, key), key) != nil
}

// Stage gives an object of the list that is new or changed. Staging a key again
// replaces what was staged first, in its place.
func (w *Writer[T]) Stage(e Entry[T]) {
	w.must("Stage", replacing)
	if rec := w.stored(e.Key); rec != nil {
		rec.mark = w.replace.mark
	} else {
		w.replace.added++
	}
	w.replace.stage(hashKey(w.sh.cfg.seed, e.Key), &record[T]{Entry: e})
}

// Unstage takes back an object of the list that is under way: it was deleted
// while the list was still being read.
func (w *Writer[T]) Unstage(key object.Key) {
	w.must("Unstage", replacing)
	if rec := w.stored(key); rec != nil {
		rec.mark = w.replace.mark - 1
	}
	w.replace.unstage(hashKey(w.sh.cfg.seed, key), key)
}

// AbortReplace drops the open list, as if nothing of it had been seen.
func (w *Writer[T]) AbortReplace() {
	w.enter("AbortReplace", replacing, idle)
	w.replace = nil
}

// CommitReplace makes the list the store's state at version v, as one batch, and
// returns its sequence number. The state before it stays readable until the new one
// is published. Then yield, unless it is nil, is given every change: the deletes,
// with now nil, and then the rest in the order of the list, with old nil where the
// object is new. The entries are read-only.
//
// A list after the first means that the changes between were not seen: it ends the
// log, which starts again at v.
func (w *Writer[T]) CommitReplace(v object.Version, yield func(old, now *Entry[T])) (seq uint64) {
	w.enter("CommitReplace", replacing, applying)
	w.hold()
	list := w.replace
	w.replace = nil
	list.table = nil // no longer needed, and the store's own may have to grow

	gone := w.unmarked(list.mark)
	for _, rec := range gone {
		w.remove(rec.Key)
	}
	if n := w.objects.n + list.added; n > len(w.sh.table.Load().cells)/4*3 {
		w.rebuild(n)
	}
	olds := make([]*record[T], len(list.order))
	for i, rec := range list.order {
		if rec != nil {
			olds[i] = w.apply(rec)
		}
	}
	w.settleReplace(v, gone, olds, list.order)
	w.seq++
	w.publish()
	seq = w.seq
	w.leave(idle)

	if yield == nil {
		return seq
	}
	for _, rec := range gone {
		yield(&rec.Entry, nil)
	}
	for i, rec := range list.order {
		if rec != nil {
			yield(olds[i].entry(), &rec.Entry)
		}
	}
	return seq
}

// settleReplace is settle for a list.
func (w *Writer[T]) settleReplace(v object.Version, gone, olds, order []*record[T]) {
	switch {
	case w.listed:
		w.log.end(v)
		if v != "" {
			w.version = v
		}
	case w.version != "":
		// Not the first state, but the first list: its changes follow what was put.
		w.advance(v)
		for _, rec := range gone {
			w.note(rec, nil)
		}
		for i, rec := range order {
			if rec != nil {
				w.note(olds[i], rec)
			}
		}
		w.explicit = v
	default:
		w.explicit = v
	}
	w.listed = true
	w.settle()
}

func (w *Writer[T]) unmarked(mark uint32) (recs []*record[T]) {
	for base := 0; base < w.objects.n; base += width {
		for _, rec := range w.objects.chunk(base) {
			if rec.mark != mark {
				recs = append(recs, rec)
			}
		}
	}
	return recs
}

func (w *Writer[T]) stored(key object.Key) *record[T] {
	return w.sh.table.Load().get(hashKey(w.sh.cfg.seed, key), key)
}

func (p *replacement[T]) stage(hash uint64, rec *record[T]) {
	at, found := p.table.find(hash, rec.Key)
	if found {
		rec.slot = p.table.cells[at].rec.Load().slot
		p.order[rec.slot] = rec
		p.table.cells[at].rec.Store(rec)
		return
	}
	if p.table.full() {
		p.grow()
		at, _ = p.table.find(hash, rec.Key)
	}
	rec.slot = uint32(len(p.order))
	p.order = append(p.order, rec)
	p.table.insert(at, hash, rec)
}

func (p *replacement[T]) unstage(hash uint64, key object.Key) {
	if at, found := p.table.find(hash, key); found {
		p.order[p.table.cells[at].rec.Load().slot] = nil
		p.table.remove(at)
	}
}

func (p *replacement[T]) grow() {
	old := p.table
	p.table = newTable[T](old.live + 1)
	for i := range old.cells {
		c := &old.cells[i]
		if rec := c.rec.Load(); rec != nil {
			at, _ := p.table.find(c.hash.Load(), rec.Key)
			p.table.insert(at, c.hash.Load(), rec)
		}
	}
}
