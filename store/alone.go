package store

import "github.com/mirador-k8s/mirador/object"

// PutAlone is Begin, Put and Commit of one item, where there is nothing more to it than a newer state of an object that is
// there, in the live layout and without a log. Anywhere else it does nothing and returns nil.
//
// That is the way of nearly every event that comes by itself. When it comes, the processor has done something else, and has none of
// the store at hand: the long way is 154 lines of its cache and 1,000 instructions, this one 99 and 650.
func (w *Writer[T]) PutAlone(it *object.Item[T]) (now, old *Entry[T], seq uint64) {
	w.must("PutAlone", idle)
	if !w.plain || !w.version.Before(it.Version) {
		return nil, nil, 0
	}
	t := w.sh.table.Load()
	_, at, found := w.locate(t, it.Key)
	if !found {
		return nil, nil, 0
	}
	was := t.cells[at].rec.Load()
	if !was.Version.Before(it.Version) {
		return nil, nil, 0
	}
	w.enter("PutAlone", idle, batching)
	epoch := w.epoch
	w.withdraw()
	w.evaluate(it.Key, it.Value, 0)
	rec := new(record[T])
	rec.fill(it)
	moved := w.update(t, at, rec, was)
	w.version = rec.Version
	w.sh.version.Store(&rec.Version)
	w.seq++
	w.fetched = nil
	if moved || w.epoch != epoch {
		w.publish()
	} else { // the rest of the snapshot, which was withdrawn, is as it was
		s := w.sh.offer.Load()
		s.seq, s.version, s.objects = w.seq, w.version, w.objects
		w.offer(s)
	}
	w.leave(idle)
	return &rec.Entry, &was.Entry, w.seq
}
