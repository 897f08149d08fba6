package store

import (
	"hash/maphash"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/mirador-k8s/mirador/object"
)

// The hash of a cell says whether it is in use. A real hash is never one of these.
const (
	emptyCell = 0
	goneCell  = 1
)

// A hash is 48 bits of the key and, below them, its length. Equal hashes mean equal lengths, unless both are longer
// than can be said.
const (
	lengthBits = 16
	longKey    = 1<<lengthBits - 1
)

func hashKey(seed maphash.Seed, key object.Key) uint64 {
	own := max(maphash.String(seed, string(key))>>lengthBits, 1)
	return own<<lengthBits | uint64(min(len(key), longKey))
}

// table finds the newest record of a key: open addressing with linear probing,
// one writer, any number of readers that take no lock.
//
// In the life of a table a cell is empty, then one key's, then gone: no other key ever moves in. So a
// reader that has seen whose cell it is takes the object from it in one step, whatever the writer does
// meanwhile. What is gone is swept out by making a new table.
type table[T any] struct {
	cells    []cell[T]
	pointers bool // T is a pointer type
	live     int  // cells with a record
	used     int  // cells that are not empty: a quarter is always empty, so probing ends
}

// cell is half a line of the processor's cache. Key and object are in the record too; but from here a Get
// of one in 50,000 fetches two lines, the cell and the key's bytes, and with the record three or four.
type cell[T any] struct {
	hash atomic.Uint64
	key  atomic.Pointer[byte]
	rec  atomic.Pointer[record[T]]
	obj  unsafe.Pointer // see objectPointer; nil: the object is in the record only
}

// belongs reports whether a cell with the hash of a key is that key's.
func (c *cell[T]) belongs(key object.Key) bool {
	if unsaid(key) {
		rec := c.rec.Load()
		return rec != nil && rec.Key == key
	}
	at := c.key.Load()
	return at != nil && unsafe.String(at, len(key)) == string(key)
}

// unsaid reports whether a key must be compared as a string, because its hash does not say its length or it has no
// bytes.
func unsaid(key object.Key) bool { return len(key) == 0 || len(key) >= longKey }

// put gives a cell a new state of its key's object. The object goes first: get relies on it.
func (t *table[T]) put(at int, rec *record[T]) {
	c := &t.cells[at]
	atomic.StorePointer(&c.obj, t.objectPointer(rec))
	c.rec.Store(rec)
	if key := unsafe.StringData(string(rec.Key)); c.key.Load() != key {
		c.key.Store(key)
	}
}

const minCells = 4

// newTable makes a table with room for n records and about n/2 more. One for none has no room, and a cell that says
// so: many stores stay empty.
func newTable[T any](n int) *table[T] {
	cells := 1
	if n > 0 {
		cells = max(minCells, 2*n)
	}
	return &table[T]{cells: make([]cell[T], cells), pointers: isPointerType[T]()}
}

// start is where the search for a hash begins among so many cells.
func start(hash uint64, cells int) int {
	return int(hash >> 32 * uint64(cells) >> 32)
}

// next is the cell after one.
func next(i, cells int) int {
	if i++; i == cells {
		return 0
	}
	return i
}

// seek finds the cell of a key, or nil.
func (t *table[T]) seek(hash uint64, key object.Key) *cell[T] {
	if at, found := t.find(hash, key); found {
		return &t.cells[at]
	}
	return nil
}

// object gives the object of a key.
func (t *table[T]) object(hash uint64, key object.Key) (obj T, ok bool) {
	c := t.seek(hash, key)
	if c == nil {
		return obj, false
	}
	if p := atomic.LoadPointer(&c.obj); p != nil {
		return objectAt[T](p), true
	}
	if rec := c.rec.Load(); rec != nil {
		return rec.Object(), true
	}
	return obj, false
}

// get gives the record of a key, or nil. Whoever was given an object is given no older record after it: in
// the middle of a put, get waits for the other half.
func (t *table[T]) get(hash uint64, key object.Key) *record[T] {
	c := t.seek(hash, key)
	if c == nil {
		return nil
	}
	for {
		obj, rec := atomic.LoadPointer(&c.obj), c.rec.Load()
		if rec == nil || obj == t.objectPointer(rec) {
			return rec
		}
		runtime.Gosched()
	}
}

// find gives the cell of a key or, where there is none, the cell to put it in.
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

// full reports whether a further record would leave too few empty cells.
func (t *table[T]) full() bool { return t.used+1 > len(t.cells)/4*3 }

// sparse reports whether the table is far larger than its content.
func (t *table[T]) sparse() bool { return len(t.cells) > minCells && t.live < len(t.cells)/8 }

// insert fills an empty cell that find gave. The hash goes in last: whoever sees it sees the rest.
func (t *table[T]) insert(at int, hash uint64, rec *record[T]) {
	t.put(at, rec)
	t.cells[at].hash.Store(hash)
	t.used++
	t.live++
}

// adopt puts what is in a cell of an older table into this one, which does not have it, and says where. It looks at
// nothing but the cell: to fetch each record and key took most of the time of making a large table anew.
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

// remove takes the record out of a cell.
func (t *table[T]) remove(at int) {
	c := &t.cells[at]
	atomic.StorePointer(&c.obj, nil)
	c.rec.Store(nil)
	c.key.Store(nil)
	c.hash.Store(goneCell)
	t.live--
}

// A snapshot cannot use the table, which moves on. It has the same cells as a
// persistent vector of words: slot and half of the hash. An update keeps an object's
// slot and so touches no word.
//
// The half is the lower one: what start does not look at, and the length.
func word(slot uint32, hash uint64) uint64 { return (uint64(slot)+1)<<32 | uint64(uint32(hash)) }

// find gives the seat of a key, or nil.
func (s *Snapshot[T]) find(key object.Key) *seat[T] {
	hash := hashKey(s.cfg.seed, key)
	for i := start(hash, s.words.n); ; i = next(i, s.words.n) {
		w := s.words.get(i)
		if w == emptyCell {
			return nil
		}
		if slot := int(w>>32) - 1; slot >= 0 && uint32(w) == uint32(hash) && s.seats(slot, key) {
			return s.objects.at(slot)
		}
	}
}

// seats reports whether a slot, found by the hash of a key, is that key's.
func (s *Snapshot[T]) seats(slot int, key object.Key) bool {
	if s.keys.n == 0 || unsaid(key) {
		return s.objects.at(slot).rec.Key == key
	}
	return unsafe.String(s.keys.get(slot), len(key)) == string(key)
}
