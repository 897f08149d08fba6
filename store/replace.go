package store

import (
	"slices"
	"strings"

	"github.com/mirador-k8s/mirador/object"
)

// replacement is an open list. Objects that the store already has are marked in their records; only new and changed
// objects are held here, as they will be stored, so that the peak of memory is the final state plus what changed.
type replacement[T any] struct {
	mark  uint32
	order []staged[T]       // without a record if the object was unstaged
	table *table[T]         // the records of order by key
	added int               // how many of them the store does not have
	known map[string]string // index values of staged records, one string for each
}

// staged is a record of a list. A packed one has its index values, so that it is not decoded for them at the end.
type staged[T any] struct {
	rec    *record[T]
	values []staging
	ready  int // number of indexes whose values are known

	repeated *record[T] // instead of rec: a stored record for which Repeat was called
}

// staging is one value of one index of a staged record.
type staging struct {
	index int
	value string
}

// BeginReplace opens a list of all objects. CommitReplace deletes every object that was neither passed to Seen with
// success, nor to Keep or Stage. Readers see no effect until then.
func (w *Writer[T]) BeginReplace() {
	w.enter("BeginReplace", idle, replacing)
	w.replaces++
	w.replace = &replacement[T]{mark: w.replaces, table: newTable[T](0), known: map[string]string{}}
}

// Seen states that the list has an object in this version. If it returns true, the store has that version and the
// object needs no further call; otherwise the caller has to Stage or Keep it.
func (w *Writer[T]) Seen(key object.Key, version object.Version, uid string) bool {
	w.must("Seen", replacing)
	rec := w.stored(key)
	if rec == nil || version == "" || rec.Version != version || !object.SameObject(rec.UID, uid) {
		return false
	}
	rec.mark = w.replace.mark
	w.keeper.drop(w.replace.unstage(hashKey(w.sh.cfg.seed, key), key))
	return true
}

// Repeat makes CommitReplace yield an object for which Seen has just returned true, in its position in the list, with
// old and now the same, unless a later item of the list changes it.
func (w *Writer[T]) Repeat(key object.Key) {
	w.must("Repeat", replacing)
	if rec := w.stored(key); rec != nil {
		w.replace.order = append(w.replace.order, staged[T]{repeated: rec})
	}
}

// Staged reports whether an object was already staged in this version. It needs no further call then.
func (w *Writer[T]) Staged(key object.Key, version object.Version, uid string) bool {
	w.must("Staged", replacing)
	rec := w.replace.table.get(hashKey(w.sh.cfg.seed, key), key)
	return rec != nil && version != "" && rec.Version == version && object.SameObject(rec.UID, uid)
}

// Keep states that the list has an object in an unknown state, such as one that could not be decoded: its stored state
// stays unless the object was staged. It returns whether a stored state stays.
func (w *Writer[T]) Keep(key object.Key) bool {
	w.must("Keep", replacing)
	rec := w.stored(key)
	if rec == nil {
		return false
	}
	rec.mark = w.replace.mark
	return !w.staged(key)
}

// Stage adds a new or changed object of the list. It takes the item as Put does. Staging a key again replaces the
// first item, in its position.
func (w *Writer[T]) Stage(it object.Item[T]) {
	w.must("Stage", replacing)
	w.stage(it)
}

func (w *Writer[T]) stage(it object.Item[T]) {
	s := staged[T]{rec: w.keeper.keep(&it)}
	if s.rec.packed() {
		w.evaluate(it.Key, it.Value, 0)
		s.values, s.ready = w.replace.hold(w.values), len(w.values)
		clear(w.values)
	}
	w.stageRecord(s)
}

func (w *Writer[T]) stageRecord(s staged[T]) {
	key := s.rec.Key
	known := w.stored(key)
	if known != nil {
		known.mark = w.replace.mark
	}
	before := w.replace.stage(hashKey(w.sh.cfg.seed, key), s)
	if known == nil && before == nil {
		w.replace.added++
	}
	w.keeper.drop(before)
}

// ListOpen reports whether a list is open.
func (w *Writer[T]) ListOpen() bool { return w.replace != nil }

// stageStored stages the stored state of an object that a batch during the open list is about to change, if the list
// has that state, so that CommitReplace restores it.
func (w *Writer[T]) stageStored(key object.Key) {
	rec := w.stored(key)
	if rec == nil || rec.mark != w.replace.mark || w.staged(key) {
		return
	}
	it := rec.item()
	it.Key = key
	w.stage(it)
}

// staged reports whether an object is staged.
func (w *Writer[T]) staged(key object.Key) bool {
	return w.replace.table.get(hashKey(w.sh.cfg.seed, key), key) != nil
}

// hold copies index values for the end of the list, with one string for equal values.
func (p *replacement[T]) hold(values [][]string) (held []staging) {
	n := 0
	for _, vs := range values {
		n += len(vs)
	}
	held = make([]staging, 0, n)
	for x, vs := range values {
		for _, v := range vs {
			one, ok := p.known[v]
			if !ok {
				one = strings.Clone(v)
				p.known[one] = one
			}
			held = append(held, staging{x, one})
		}
	}
	return held
}

// ready stores the index values of a staged record in w.values.
func (w *Writer[T]) ready(s *staged[T]) {
	for _, v := range s.values {
		w.values[v.index] = append(w.values[v.index], v.value)
	}
	if s.ready < len(w.values) {
		w.evaluateStored(s.rec, s.ready)
	}
	s.values = nil
}

// Unstage removes an object from the open list: it was deleted while the list was being read.
func (w *Writer[T]) Unstage(key object.Key) {
	w.must("Unstage", replacing)
	known, before := w.stored(key), w.replace.unstage(hashKey(w.sh.cfg.seed, key), key)
	switch {
	case known != nil:
		known.mark = w.replace.mark - 1
	case before != nil:
		w.replace.added--
	}
	w.keeper.drop(before)
}

// AbortReplace drops the open list. The store stays as it was.
func (w *Writer[T]) AbortReplace() {
	w.enter("AbortReplace", replacing, idle)
	for _, s := range w.replace.order {
		w.keeper.drop(s.rec)
	}
	w.replace = nil
}

// CommitReplace makes the list the store's state at version v, as one batch, and returns its sequence number. The
// previous state stays readable until the new one is published. Then yield, unless it is nil, is called for every
// change: first for deletes, with now nil, then for the others in the order of the list, with old nil for an add, and
// with old and now the same after Repeat. The entries are read-only.
//
// Changes between two lists are unknown, so every list after the first drops the log, which starts again at v.
func (w *Writer[T]) CommitReplace(v object.Version, yield func(old, now *Entry[T])) (seq uint64) {
	w.enter("CommitReplace", replacing, applying)
	defer w.phase.CompareAndSwap(applying, idle) // an index function may end the goroutine: then only Reset helps
	w.keepLatest()
	list := w.replace
	w.replace = nil
	list.table, list.known = nil, nil // free memory, since the store's table may have to grow

	gone := w.unmarked(list.mark)
	for _, rec := range gone {
		w.keeper.drop(w.remove(rec.Key))
	}
	if t := w.sh.table.Load(); t.used+list.added > len(t.cells)/4*3 {
		w.rebuild(t.live + list.added)
	}
	olds := make([]*record[T], len(list.order))
	for i := range list.order {
		if s := &list.order[i]; s.rec != nil {
			w.ready(s)
			hash, at, found := w.locate(w.sh.table.Load(), s.rec.Key)
			olds[i] = w.apply(hash, at, found, s.rec)
			w.keeper.drop(olds[i])
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
	for i, s := range list.order {
		switch {
		case s.rec != nil:
			yield(olds[i].entry(), &s.rec.Entry)
		case s.repeated != nil && w.stored(s.repeated.Key) == s.repeated:
			yield(&s.repeated.Entry, &s.repeated.Entry)
		}
	}
	return seq
}

// settleReplace is settle for a list.
func (w *Writer[T]) settleReplace(v object.Version, gone, olds []*record[T], order []staged[T]) {
	w.log.seq = w.seq + 1
	switch {
	case w.listed:
		w.log.end(v)
		if v != "" {
			w.version = v
		}
	case w.version != "":
		// The first list, after batches: its changes follow theirs in the log.
		w.advance(v)
		for _, rec := range gone {
			w.note(rec, nil)
		}
		for i, s := range order {
			if s.rec != nil {
				w.reindexed = true // not known any more
				w.note(olds[i], s.rec)
			}
		}
		w.explicit = v
	default:
		w.explicit = v
		w.log.lacks()
	}
	w.listed = true
	w.settleLog(len(gone) > 0 || slices.ContainsFunc(order, func(s staged[T]) bool { return s.rec != nil }))
}

func (w *Writer[T]) unmarked(mark uint32) (recs []*record[T]) {
	for base := 0; base < w.objects.n; base += width {
		for _, v := range w.objects.chunk(base) {
			rec := v.rec
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

// stage adds a record and returns the one that it replaces, or nil.
func (p *replacement[T]) stage(hash uint64, s staged[T]) (old *record[T]) {
	rec := s.rec
	at, found := p.table.find(hash, rec.Key)
	if found {
		old = p.table.cells[at].rec.Load()
		rec.slot = old.slot
		p.order[rec.slot] = s
		p.table.put(at, rec)
		return old
	}
	if p.table.full() {
		p.grow()
		at, _ = p.table.find(hash, rec.Key)
	}
	rec.slot = uint32(len(p.order))
	p.order = append(p.order, s)
	p.table.insert(at, hash, rec)
	return nil
}

// unstage removes the record of a key and returns it, or nil.
func (p *replacement[T]) unstage(hash uint64, key object.Key) (old *record[T]) {
	if at, found := p.table.find(hash, key); found {
		old = p.table.cells[at].rec.Load()
		p.order[old.slot] = staged[T]{}
		p.table.remove(at)
	}
	return old
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
