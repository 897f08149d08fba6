package store

import (
	"slices"
	"strings"

	"github.com/mirador-k8s/mirador/object"
)

// replacement is a list on its way in. The objects that the store has already are
// marked in their records; only what is new or changed is held here, as it will be
// stored: so the peak is the final state and what changed.
type replacement[T any] struct {
	mark  uint32
	order []staged[T]       // no record where a later item of the list took it back
	table *table[T]         // the records of order by key
	added int               // how many of them the store does not have
	known map[string]string // the index values that staged records wait with
}

// staged is a record of a list. A packed one waits with its index values, so that it
// is not decoded for them again.
type staged[T any] struct {
	rec    *record[T]
	values []staging
	ready  int // of how many indexes values are known

	again *record[T] // in place of rec: a stored record that Repeat was called for
}

// staging is one value of one index.
type staging struct {
	index int
	value string
}

// BeginReplace opens a whole list: everything that is neither Seen, kept nor staged
// before CommitReplace will be deleted. Readers notice nothing until then.
func (w *Writer[T]) BeginReplace() {
	w.enter("BeginReplace", idle, replacing)
	w.replaces++
	w.replace = &replacement[T]{mark: w.replaces, table: newTable[T](0), known: map[string]string{}}
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
	w.keeper.drop(w.replace.unstage(hashKey(w.sh.cfg.seed, key), key))
	return true
}

// Repeat says of an object for which Seen has just returned true that it is to be told in its place in the list: CommitReplace yields
// it with old and now the same, unless the rest of the list changes it.
func (w *Writer[T]) Repeat(key object.Key) {
	w.must("Repeat", replacing)
	if rec := w.stored(key); rec != nil {
		w.replace.order = append(w.replace.order, staged[T]{again: rec})
	}
}

// Staged reports whether the list has had an object in this version already, and it
// was staged: there is nothing more to do then.
func (w *Writer[T]) Staged(key object.Key, version object.Version, uid string) bool {
	w.must("Staged", replacing)
	rec := w.replace.table.get(hashKey(w.sh.cfg.seed, key), key)
	return rec != nil && version != "" && rec.Version == version && object.SameObject(rec.UID, uid)
}

// Keep says that the list has an object of which no more is known, such as one
// that could not be decoded: what is stored of it stays, unless the list has staged the
// object. It returns whether a stored state stays.
func (w *Writer[T]) Keep(key object.Key) bool {
	w.must("Keep", replacing)
	rec := w.stored(key)
	if rec == nil {
		return false
	}
	rec.mark = w.replace.mark
	return !w.staged(key)
}

// Stage gives an object of the list that is new or changed. Staging a key again
// replaces what was staged first, in its place.
// It takes the item as Put does.
func (w *Writer[T]) Stage(it object.Item[T]) {
	w.must("Stage", replacing)
	w.stage(it)
}

func (w *Writer[T]) stage(it object.Item[T]) {
	known := w.stored(it.Key)
	if known != nil {
		known.mark = w.replace.mark
	}
	s := staged[T]{rec: w.keeper.keep(&it)}
	if s.rec.packed() {
		w.evaluate(it.Key, it.Value, 0)
		s.values, s.ready = w.replace.hold(w.values), len(w.values)
		clear(w.values)
	}
	before := w.replace.stage(hashKey(w.sh.cfg.seed, it.Key), s)
	if known == nil && before == nil {
		w.replace.added++
	}
	w.keeper.drop(before)
}

// ListOpen reports whether a list is open.
func (w *Writer[T]) ListOpen() bool { return w.replace != nil }

// secure lets the open list keep what it has of an object that a batch beside it is about to change: an object that the
// list has as it was stored is staged, as any other is that the list has to bring back.
func (w *Writer[T]) secure(key object.Key) {
	rec := w.stored(key)
	if rec == nil || rec.mark != w.replace.mark || w.staged(key) {
		return
	}
	it := rec.item()
	it.Key = key
	w.stage(it)
}

// staged reports whether the open list has a state of its own of an object.
func (w *Writer[T]) staged(key object.Key) bool {
	return w.replace.table.get(hashKey(w.sh.cfg.seed, key), key) != nil
}

// hold copies index values that wait for the end of the list; equal ones are one
// string.
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

// ready puts the index values of a staged record into w.values.
func (w *Writer[T]) ready(s *staged[T]) {
	for _, v := range s.values {
		w.values[v.index] = append(w.values[v.index], v.value)
	}
	if s.ready < len(w.values) {
		w.evaluateStored(s.rec, s.ready)
	}
	s.values = nil
}

// Unstage takes back an object of the list that is under way: it was deleted
// while the list was still being read.
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

// AbortReplace drops the open list, as if nothing of it had been seen.
func (w *Writer[T]) AbortReplace() {
	w.enter("AbortReplace", replacing, idle)
	for _, s := range w.replace.order {
		w.keeper.drop(s.rec)
	}
	w.replace = nil
}

// CommitReplace makes the list the store's state at version v, as one batch, and
// returns its sequence number. The state before it stays readable until the new one
// is published. Then yield, unless it is nil, is given every change: the deletes,
// with now nil, and then the rest in the order of the list, with old nil where the
// object is new and old and now the same where Repeat asked for it. The entries are read-only.
//
// A list after the first means that the changes between were not seen: it ends the
// log, which starts again at v.
func (w *Writer[T]) CommitReplace(v object.Version, yield func(old, now *Entry[T])) (seq uint64) {
	w.enter("CommitReplace", replacing, applying)
	w.hold()
	list := w.replace
	w.replace = nil
	list.table, list.known = nil, nil // no longer needed, and the store's own may have to grow

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
		case s.again != nil && w.stored(s.again.Key) == s.again:
			yield(&s.again.Entry, &s.again.Entry)
		}
	}
	return seq
}

// settleReplace is settle for a list.
func (w *Writer[T]) settleReplace(v object.Version, gone, olds []*record[T], order []staged[T]) {
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
		for i, s := range order {
			if s.rec != nil {
				w.note(olds[i], s.rec)
			}
		}
		w.explicit = v
	default:
		w.explicit = v
	}
	w.listed = true
	w.settleLog(len(gone) > 0 || slices.ContainsFunc(order, func(s staged[T]) bool { return s.rec != nil }))
}

func (w *Writer[T]) unmarked(mark uint32) (recs []*record[T]) {
	for base := 0; base < w.objects.n; base += width {
		for _, seat := range w.objects.chunk(base) {
			rec := seat.rec
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

// stage adds a record, and returns the one that it takes the place of.
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

// unstage takes a record back, and returns it.
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
