package store

import (
	"strings"
	"unsafe"

	"github.com/mirador-k8s/mirador/object"
)

// Together is how many keys one call of Fetch is best given: about as many as a processor waits for at the same time.
const Together = 16

// Fetch reads what the store has of some keys, so that Puts and Deletes of them right after it find it in the
// processor's caches. One by one, each of them waits for memory four or five times; here all wait at the same time.
// It changes nothing but the time that they take.
func (w *Writer[T]) Fetch(keys []object.Key) {
	t := w.sh.table.Load()
	var hashes [Together]uint64
	for len(keys) > 0 {
		some := keys[:min(len(keys), Together)]
		keys = keys[len(some):]
		for i, k := range some {
			hashes[i] = hashKey(w.sh.cfg.seed, k)
			w.fetched += uint32(t.cells[start(hashes[i], len(t.cells))].hash.Load())
		}
		for i, k := range some {
			at, found := t.find(hashes[i], k)
			if !found {
				continue
			}
			rec := t.cells[at].rec.Load()
			if rec.Version != "" {
				w.fetched += uint32(rec.Version[0])
			}
			w.fetched += w.objects.at(int(rec.slot)).rec.slot
		}
	}
}

// locate finds the cell of a key, or the free cell where it would be stored.
func (w *Writer[T]) locate(t *table[T], key object.Key) (hash uint64, at int, found bool) {
	hash = hashKey(w.sh.cfg.seed, key)
	at, found = t.find(hash, key)
	return hash, at, found
}

// apply stores a record where locate has found its key, or room for it, under the index values in w.values. It
// returns the record that it replaced.
func (w *Writer[T]) apply(hash uint64, at int, found bool, rec *record[T]) (old *record[T]) {
	t := w.sh.table.Load()
	if found {
		old = t.cells[at].rec.Load()
		w.update(t, at, rec, old)
		return old
	}
	if t.full() {
		w.rebuild(t.live + 1)
		t = w.sh.table.Load()
		at, _ = t.find(hash, rec.Key)
	}
	rec.slot = uint32(w.objects.n)
	w.objects.push(w.epoch, seatOf(rec))
	if w.sh.cfg.keysStay() {
		w.keys.push(w.epoch, unsafe.StringData(string(rec.Key)))
	}
	w.reindex(rec, nil)
	t.insert(at, hash, rec)
	w.words.set(w.epoch, at, word(rec.slot, hash))
	return nil
}

// update puts a record where an older one of the same object is.
func (w *Writer[T]) update(t *table[T], at int, rec, old *record[T]) {
	rec.slot, rec.mark = old.slot, old.mark
	if w.sh.cfg.keysStay() {
		rec.Key = old.Key // one string for all states of an object: w.keys relies on it
	}
	w.objects.set(w.epoch, int(rec.slot), seatOf(rec))
	w.reindex(rec, old)
	t.put(at, rec)
}

// remove takes an object out of everything. The last object moves into its slot, so
// that slots have no holes.
func (w *Writer[T]) remove(key object.Key) (old *record[T]) {
	t := w.sh.table.Load()
	_, at, found := w.locate(t, key)
	if !found {
		return nil
	}
	old = t.cells[at].rec.Load()
	for i := range old.refs.len() {
		w.leaveBucket(old.refs.at(i))
	}
	old.refs = refs{}
	t.remove(at)
	w.words.set(w.epoch, at, goneCell)

	if last := w.objects.at(w.objects.n - 1).rec; last != old {
		w.move(last, old.slot, t)
	}
	w.objects.pop(w.epoch)
	if w.sh.cfg.keysStay() {
		w.keys.pop(w.epoch)
	}
	if t.sparse() {
		w.rebuild(t.live)
	}
	return old
}

// move gives an object another slot, wherever its slot is written down.
func (w *Writer[T]) move(rec *record[T], slot uint32, t *table[T]) {
	rec.slot = slot
	w.objects.set(w.epoch, int(slot), seatOf(rec))
	if w.sh.cfg.keysStay() {
		w.keys.set(w.epoch, int(slot), unsafe.StringData(string(rec.Key)))
	}
	for i := range rec.refs.len() {
		r := rec.refs.at(i)
		w.own(r.index, r.h).slots.set(w.epoch, int(r.pos), slot)
	}
	hash := hashKey(w.sh.cfg.seed, rec.Key)
	at, _ := t.find(hash, rec.Key)
	w.words.set(w.epoch, at, word(slot, hash))
}

// rebuild makes a table without traces of deletion, for the objects there are and
// up to n in all. Readers go on in the old one until the new one is complete.
func (w *Writer[T]) rebuild(n int) {
	t := newTable[T](n)
	words := make([]uint64, len(t.cells))
	if old := w.sh.table.Load(); old != nil && w.objects.n > 0 {
		for i := range old.cells {
			if c := &old.cells[i]; c.hash.Load() > goneCell {
				words[t.adopt(c)] = w.words.get(i)
			}
		}
	}
	w.words = vec[uint64]{}
	for _, x := range words {
		w.words.push(w.epoch, x)
	}
	w.sh.table.Store(t)
}

// useIndexes makes a set the store's, with a trie for each index.
func (w *Writer[T]) useIndexes(set *indexSet[T]) {
	w.set = set
	roots := make([]*trieNode, len(set.funcs))
	copy(roots, w.roots)
	w.roots = roots
	w.values = make([][]string, len(set.funcs))
}

// AddIndexes adds indexes at any time, also inside a batch or a replace, and
// indexes the objects that are there. It adds all of them or, if one has no name or
// function or exists already, none.
func (w *Writer[T]) AddIndexes(add map[string]IndexFunc[T]) error {
	set, err := w.set.with(add)
	if err != nil {
		return err
	}
	phase := w.phase.Load()
	if phase != batching {
		if phase == applying {
			w.misused("AddIndexes")
		}
		w.enter("AddIndexes", phase, applying)
		w.hold()
		defer func() {
			w.publish()
			w.leave(phase)
		}()
	}
	from := len(w.set.funcs)
	w.useIndexes(set)
	for base := 0; base < w.objects.n; base += width {
		for _, seat := range w.objects.chunk(base) {
			rec := seat.rec
			w.evaluateStored(rec, from)
			w.enterBuckets(rec, from)
		}
	}
	return nil
}

// evaluateStored is evaluate for an object that may have to be decoded first.
func (w *Writer[T]) evaluateStored(rec *record[T], from int) {
	var obj T
	if w.set.needsObjects(from) {
		obj = rec.Object()
	}
	w.evaluate(rec.Key, obj, from)
}

// evaluate runs the index functions, from a number on, into w.values. That of an index by namespace stays empty: see valuesOf.
func (w *Writer[T]) evaluate(key object.Key, obj T, from int) {
	for i := from; i < len(w.set.funcs); i++ {
		if w.set.funcs[i] == nil {
			continue
		}
		values, err := callIndex(w.set.funcs[i], obj)
		if err != nil {
			w.sh.cfg.report(key, w.set.names[i], err)
			values = nil
		}
		w.values[i] = values
	}
}

// valuesOf gives the values of an index. A namespace is cut from the key, and only here: an update, which changes no key,
// does not need it.
func (w *Writer[T]) valuesOf(index int, key object.Key) []string {
	if w.set.funcs[index] == nil {
		w.namespace[0], _ = key.Split()
		return w.namespace[:]
	}
	return w.values[index]
}

// reindex brings the buckets from an object's old values to w.values. An update
// that changes no value, which is nearly every one, touches no bucket.
func (w *Writer[T]) reindex(rec, old *record[T]) {
	if old == nil {
		w.enterBuckets(rec, 0)
		return
	}
	was := old.refs
	old.refs = refs{}
	if w.sameValues(&was) {
		rec.refs = was
		clear(w.values)
		return
	}
	// Mark the handles of the old values, so that enterMarked knows them, and
	// leave those that it did not want.
	w.visits += 2
	for i := range was.len() {
		r := was.at(i)
		r.h.visit, r.h.at = w.visits, i
	}
	w.enterMarked(rec, &was, 0)
	for i := range was.len() {
		if r := was.at(i); r.h.visit == w.visits {
			w.leaveBucket(r)
		}
	}
}

// sameValues reports whether an object that was in some buckets has the same values now.
func (w *Writer[T]) sameValues(was *refs) bool {
	i, n := 0, was.len()
	for x, vs := range w.values {
		if w.set.funcs[x] == nil { // the key is the same, and so is what is cut from it
			if i == n || was.at(i).index != uint32(x) {
				return false
			}
			i++
			continue
		}
		for _, v := range vs {
			if i == n || was.at(i).index != uint32(x) || was.at(i).h.value != v {
				return false
			}
			i++
		}
	}
	return i == n
}

// enterBuckets puts an object that is in none of them into the buckets of w.values,
// from an index on, and notes where it stands.
func (w *Writer[T]) enterBuckets(rec *record[T], from int) {
	w.visits += 2
	w.enterMarked(rec, nil, from)
}

// enterMarked is enterBuckets for an object that may be in some: a handle with
// visit w.visits is one that it was in, at its place in was; w.visits+1 means that
// the value was met already.
func (w *Writer[T]) enterMarked(rec *record[T], was *refs, from int) {
	for x := from; x < len(w.values); x++ {
		for _, v := range w.valuesOf(x, rec.Key) {
			h := w.handleOf(x, v)
			switch h.visit {
			case w.visits + 1:
				continue
			case w.visits:
				rec.refs.add(*was.at(h.at))
			default:
				b := w.own(uint32(x), h)
				rec.refs.add(ref{h: h, pos: uint32(b.slots.n), index: uint32(x)})
				b.slots.push(w.epoch, rec.slot)
			}
			h.visit = w.visits + 1
		}
	}
	clear(w.values)
}

// handleOf finds the bucket of a value or makes one. It keeps a copy of the value,
// which may be a piece of a large object.
func (w *Writer[T]) handleOf(index int, value string) *handle {
	hash := hashValue(w.sh.cfg.seed, value)
	if b := w.roots[index].find(hash, value); b != nil {
		return b.h
	}
	h := &handle{value: strings.Clone(value), hash: hash}
	h.cur = &bucket{owner: w.epoch, h: h}
	w.roots[index] = w.roots[index].put(w.epoch, 0, h.cur)
	return h
}

// own returns a bucket that may be edited, copied if a snapshot shares it.
func (w *Writer[T]) own(index uint32, h *handle) *bucket {
	if h.cur.owner != w.epoch {
		h.cur = &bucket{owner: w.epoch, h: h, slots: h.cur.slots}
		w.roots[index] = w.roots[index].put(w.epoch, 0, h.cur)
	}
	return h.cur
}

// leaveBucket takes an object out of a bucket; the bucket's last moves to its place.
func (w *Writer[T]) leaveBucket(r *ref) {
	b := w.own(r.index, r.h)
	if last := b.slots.n - 1; int(r.pos) != last {
		slot := b.slots.get(last)
		b.slots.set(w.epoch, int(r.pos), slot)
		moved := &w.objects.at(int(slot)).rec.refs
		for i := range moved.len() {
			if m := moved.at(i); m.h == r.h {
				m.pos = r.pos
				break
			}
		}
	}
	b.slots.pop(w.epoch)
	if b.slots.n == 0 {
		w.roots[r.index] = w.roots[r.index].remove(w.epoch, 0, r.h)
	}
}
