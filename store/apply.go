package store

import (
	"strings"
	"unsafe"

	"github.com/mirador-k8s/mirador/object"
)

// Together is the best number of keys for one call of Fetch: about as many cache misses as a processor handles at the
// same time.
const Together = 16

// Fetch loads the records of some keys into the processor's caches for the Puts and Deletes that follow. Each of those
// would wait for memory four or five times; Fetch waits for all keys at the same time. It has no other effect.
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

// locate returns the cell of a key, or the free cell in which it would be stored.
func (w *Writer[T]) locate(t *table[T], key object.Key) (hash uint64, at int, found bool) {
	hash = hashKey(w.sh.cfg.seed, key)
	at, found = t.find(hash, key)
	return hash, at, found
}

// apply stores a record in the cell that locate returned, under the index values in w.values. It returns the record
// that it replaced.
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
	w.objects.push(w.epoch, slotValueOf(rec))
	if w.sh.cfg.keysStay() {
		w.keys.push(w.epoch, unsafe.StringData(string(rec.Key)))
	}
	w.reindex(rec, nil)
	t.insert(at, hash, rec)
	w.words.set(w.epoch, at, word(rec.slot, hash))
	return nil
}

// update replaces the record of an object.
func (w *Writer[T]) update(t *table[T], at int, rec, old *record[T]) {
	rec.slot, rec.mark = old.slot, old.mark
	if w.sh.cfg.keysStay() {
		rec.Key = old.Key // w.keys relies on one string for all states of an object
	}
	w.objects.set(w.epoch, int(rec.slot), slotValueOf(rec))
	w.reindex(rec, old)
	t.put(at, rec)
}

// remove removes an object. The last object moves to its slot, so that slots have no gaps.
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

// move moves an object to another slot and updates everything that refers to its slot.
func (w *Writer[T]) move(rec *record[T], slot uint32, t *table[T]) {
	rec.slot = slot
	w.objects.set(w.epoch, int(slot), slotValueOf(rec))
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

// rebuild makes a table for the existing objects and up to n in all, without cells of deleted objects. Readers use the
// old one until the new one is complete.
func (w *Writer[T]) rebuild(n int) {
	t := newTable[T](n)
	words := make([]uint64, len(t.cells))
	if old := w.sh.table.Load(); old != nil && w.objects.n > 0 {
		t.pointers.adopt(&old.pointers)
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

// useIndexes sets the store's indexes and makes an empty trie for each new one.
func (w *Writer[T]) useIndexes(set *indexSet[T]) {
	w.set = set
	roots := make([]*trieNode, len(set.funcs))
	copy(roots, w.roots)
	w.roots = roots
	w.values = make([][]string, len(set.funcs))
}

// AddIndexes adds indexes and indexes the stored objects. It may be called at any time, also during a batch or a list.
// It adds all of them or none: none if one has no name, has no function or exists already.
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
		w.keepLatest()
		defer func() {
			w.publish()
			w.leave(phase)
		}()
	}
	from := len(w.set.funcs)
	w.useIndexes(set)
	for base := 0; base < w.objects.n; base += width {
		for _, v := range w.objects.chunk(base) {
			rec := v.rec
			w.evaluateStored(rec, from)
			w.enterBuckets(rec, from)
		}
	}
	return nil
}

// evaluateStored is evaluate for a stored object, which it decodes if an index function needs it.
func (w *Writer[T]) evaluateStored(rec *record[T], from int) {
	var obj T
	if w.set.needsObjects(from) {
		obj = rec.Object()
	}
	w.evaluate(rec.Key, obj, from)
}

// evaluate runs the index functions from number from on and stores their results in w.values. The values of an index
// by namespace stay empty: see valuesOf.
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

// valuesOf returns the values of an index. Only here is a namespace taken from the key: an update does not change the
// key, and so does not need the namespace.
func (w *Writer[T]) valuesOf(index int, key object.Key) []string {
	if w.set.funcs[index] == nil {
		w.namespace[0], _ = key.Split()
		return w.namespace[:]
	}
	return w.values[index]
}

// reindex moves an object from the buckets of its old values to those of w.values. Nearly every update changes no
// value and touches no bucket.
func (w *Writer[T]) reindex(rec, old *record[T]) {
	w.reindexed = true
	if old == nil {
		w.enterBuckets(rec, 0)
		return
	}
	was := old.refs
	old.refs = refs{}
	if w.sameValues(&was) {
		w.reindexed = false
		rec.refs = was
		clear(w.values)
		return
	}
	// Mark the handles of the old values for enterMarked, then leave the buckets that are still marked.
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

// sameValues reports whether w.values are the values of the buckets that an object was in.
func (w *Writer[T]) sameValues(was *refs) bool {
	i, n := 0, was.len()
	for x, vs := range w.values {
		if w.set.funcs[x] == nil { // the key is the same, and so is its namespace
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

// enterBuckets adds an object to the buckets of w.values, from index number from on, and records its positions. The
// object is in none of them.
func (w *Writer[T]) enterBuckets(rec *record[T], from int) {
	w.visits += 2
	w.enterMarked(rec, nil, from)
}

// enterMarked is enterBuckets for an object that may be in some of the buckets. A handle whose visit is w.visits is of
// a bucket that the object was in, at position h.at of was; w.visits+1 means that the value has been handled.
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

// handleOf returns the bucket of a value, which it makes if necessary. It copies the value, which may be a part of a
// large object.
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

// leaveBucket removes an object from a bucket. The bucket's last object moves to its position.
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
