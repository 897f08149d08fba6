package store

import (
	"hash/maphash"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/mirador-k8s/mirador/object"
)

// Hashes of cells that are not in use. The hash of a key is never one of these.
const (
	emptyCell = 0
	goneCell  = 1
)

// The hash of a key has 48 hashed bits and, below them, the length of the key. Equal hashes mean equal lengths, unless
// both are at least longKey.
const (
	lengthBits = 16
	longKey    = 1<<lengthBits - 1
)

func hashKey(seed maphash.Seed, key object.Key) uint64 {
	own := max(maphash.String(seed, string(key))>>lengthBits, 1)
	return own<<lengthBits | uint64(min(len(key), longKey))
}

// table finds the current record of a key: a hash table with linear probing for one writer and any number of readers
// without locks.
//
// A cell is empty, then belongs to one key, then is gone: no other key ever uses it. So a reader that has found the
// cell of a key loads the object in one step, whatever the writer does at the same time. A new table drops the cells
// that are gone.
type table[T any] struct {
	cells    []cell[T]
	pointers pointers[T]
	live     int // cells with a record
	used     int // cells that are not empty: a quarter is always empty, so probing ends
}

// cell is half a cache line. Key and object are in the record too, but with them in the cell a Get loads two cache
// lines, the cell and the key's bytes, instead of three or four.
type cell[T any] struct {
	hash atomic.Uint64
	key  atomic.Pointer[byte]
	rec  atomic.Pointer[record[T]]
	obj  unsafe.Pointer // from pointers; nil: the object is in the record only
}

// belongs reports whether a cell with the hash of a key is that key's.
func (c *cell[T]) belongs(key object.Key) bool {
	if comparesWholeKey(key) {
		rec := c.rec.Load()
		return rec != nil && rec.Key == key
	}
	at := c.key.Load()
	return at != nil && unsafe.String(at, len(key)) == string(key)
}

// comparesWholeKey reports whether a key must be compared through the record, because its hash does not contain its
// length or because it is empty.
func comparesWholeKey(key object.Key) bool { return len(key) == 0 || len(key) >= longKey }

// put stores a new record in the cell of its key. It stores the object first: get relies on that.
func (t *table[T]) put(at int, rec *record[T]) {
	c := &t.cells[at]
	t.pointers.learn(rec)
	atomic.StorePointer(&c.obj, t.pointers.of(rec))
	c.rec.Store(rec)
	if key := unsafe.StringData(string(rec.Key)); c.key.Load() != key {
		c.key.Store(key)
	}
}

const minCells = 4

// newTable makes a table with room for n records and about n/2 more. For n = 0 it has one cell, which stays empty,
// because many stores stay empty.
func newTable[T any](n int) *table[T] {
	cells := 1
	if n > 0 {
		cells = max(minCells, 2*n)
	}
	return &table[T]{cells: make([]cell[T], cells), pointers: newPointers[T]()}
}

// start returns the cell at which the search for a hash begins.
func start(hash uint64, cells int) int {
	return int(hash >> 32 * uint64(cells) >> 32)
}

// next returns the cell after cell i.
func next(i, cells int) int {
	if i++; i == cells {
		return 0
	}
	return i
}

// seek returns the cell of a key, or nil.
func (t *table[T]) seek(hash uint64, key object.Key) *cell[T] {
	if at, found := t.find(hash, key); found {
		return &t.cells[at]
	}
	return nil
}

// object returns the object of a key.
func (t *table[T]) object(hash uint64, key object.Key) (obj T, ok bool) {
	c := t.seek(hash, key)
	if c == nil {
		return obj, false
	}
	if p := atomic.LoadPointer(&c.obj); p != nil {
		return t.pointers.object(p), true
	}
	if rec := c.rec.Load(); rec != nil {
		return rec.Object(), true
	}
	return obj, false
}

// get returns the record of a key, or nil. A reader that has loaded an object never gets an older record after it:
// during a put, get waits until the record is stored too.
func (t *table[T]) get(hash uint64, key object.Key) *record[T] {
	c := t.seek(hash, key)
	if c == nil {
		return nil
	}
	for {
		obj, rec := atomic.LoadPointer(&c.obj), c.rec.Load()
		if rec == nil || obj == t.pointers.of(rec) {
			return rec
		}
		runtime.Gosched()
	}
}

// find returns the cell of a key or, if there is none, the empty cell to put it in.
func (t *table[T]) find(hash uint64, key object.Key) (at int, found bool) {
	for i := start(hash, len(t.cells)); ; i = next(i, len(t.cells)) {
		c := &t.cells[i]
		switch c.hash.Load() {
		case hash:
			if c.belongs(key) {
				return i, true
			}
		case emptyCell:
			return i, false
		}
	}
}

// full reports whether another record would leave too few empty cells.
func (t *table[T]) full() bool { return t.used+1 > len(t.cells)/4*3 }

// sparse reports whether the table is far larger than its contents.
func (t *table[T]) sparse() bool { return len(t.cells) > minCells && t.live < len(t.cells)/8 }

// insert fills an empty cell from find. It stores the hash last: a reader that sees the hash sees the rest.
func (t *table[T]) insert(at int, hash uint64, rec *record[T]) {
	t.put(at, rec)
	t.cells[at].hash.Store(hash)
	t.used++
	t.live++
}

// adopt copies a cell of an older table into this one and returns its position. It reads only the cell, because
// loading each record and key would take most of the time of a rebuild.
func (t *table[T]) adopt(c *cell[T]) (at int) {
	hash := c.hash.Load()
	for at = start(hash, len(t.cells)); t.cells[at].hash.Load() != emptyCell; {
		at = next(at, len(t.cells))
	}
	n := &t.cells[at]
	n.obj = atomic.LoadPointer(&c.obj)
	n.rec.Store(c.rec.Load())
	n.key.Store(c.key.Load())
	n.hash.Store(hash)
	t.used++
	t.live++
	return at
}

// remove marks a cell as gone.
func (t *table[T]) remove(at int) {
	c := &t.cells[at]
	atomic.StorePointer(&c.obj, nil)
	c.rec.Store(nil)
	c.key.Store(nil)
	c.hash.Store(goneCell)
	t.live--
}

// word returns what a snapshot has for a cell: the slot and half of the hash. A snapshot cannot use the table, which
// changes, and has a persistent vector of words instead. An update keeps an object's slot and so changes no word.
//
// The half is the lower one: the bits that start does not use, and the length of the key.
func word(slot uint32, hash uint64) uint64 { return (uint64(slot)+1)<<32 | uint64(uint32(hash)) }

// find returns the slot value of a key, or nil.
func (s *Snapshot[T]) find(key object.Key) *slotValue[T] {
	hash := hashKey(s.cfg.seed, key)
	for i := start(hash, s.words.n); ; i = next(i, s.words.n) {
		w := s.words.get(i)
		if w == emptyCell {
			return nil
		}
		if slot := int(w>>32) - 1; slot >= 0 && uint32(w) == uint32(hash) && s.slotHasKey(slot, key) {
			return s.objects.at(slot)
		}
	}
}

// slotHasKey reports whether a slot, found by the hash of a key, belongs to that key.
func (s *Snapshot[T]) slotHasKey(slot int, key object.Key) bool {
	if s.keys.n == 0 || comparesWholeKey(key) {
		return s.objects.at(slot).rec.Key == key
	}
	return unsafe.String(s.keys.get(slot), len(key)) == string(key)
}

// hashValue returns the hash of an index value.
func hashValue(seed maphash.Seed, value string) uint64 { return maphash.String(seed, value) }
