package store

import (
	"hash/maphash"
	"sync/atomic"
	"unsafe"

	"github.com/mirador-k8s/mirador/object"
)

// The hash of a cell says whether it is in use. A real hash is never one of these.
const (
	emptyCell = 0
	goneCell  = 1
)

func hashKey(seed maphash.Seed, key object.Key) uint64 {
	return max(maphash.String(seed, string(key)), goneCell+1)
}

// table finds the newest record of a key: open addressing with linear probing,
// one writer, any number of readers that take no lock. A reader may meet a cell
// in the middle of a change; what it returns is right because it compares the
// key of the record that it loaded, and because a key that stays never moves
// within one table. Hash and record lie side by side: in separate arrays a Get
// would wait for two cache lines.
type table[T any] struct {
	cells []cell[T]
	live  int // cells with a record
	used  int // cells that are not empty: a quarter is always empty, so probing ends
}

type cell[T any] struct {
	hash atomic.Uint64
	rec  atomic.Pointer[record[T]]
	// key is where the bytes of the record's key are. It is in the record too, but
	// from here both are fetched at once: a Get of one in 50,000 waits for memory twice
	// and not three times.
	key atomic.Pointer[byte]
}

// holds gives the record of a cell if it is a key's.
func (c *cell[T]) holds(key object.Key) *record[T] {
	at, r := c.key.Load(), c.rec.Load()
	if r == nil {
		return nil
	}
	if len(r.Key) == len(key) && unsafe.StringData(string(r.Key)) == at {
		if unsafe.String(at, len(key)) == string(key) {
			return r
		}
		return nil
	}
	if r.Key == key { // the cell was being changed
		return r
	}
	return nil
}

func (c *cell[T]) put(r *record[T]) {
	c.rec.Store(r)
	c.key.Store(unsafe.StringData(string(r.Key)))
}

const minCells = 4

// newTable makes a table with room for n records and n/2 changes more.
func newTable[T any](n int) *table[T] {
	return &table[T]{cells: make([]cell[T], max(minCells, 2*n))}
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

// get is the readers' side.
func (t *table[T]) get(hash uint64, key object.Key) *record[T] {
	for i := start(hash, len(t.cells)); ; i = next(i, len(t.cells)) {
		c := &t.cells[i]
		switch c.hash.Load() {
		case hash:
			if r := c.holds(key); r != nil {
				return r
			}
		case emptyCell:
			return nil
		}
	}
}

// find gives the cell of a key or, where there is none, the cell to put it in.
func (t *table[T]) find(hash uint64, key object.Key) (at int, found bool) {
	free, haveFree := 0, false
	for i := start(hash, len(t.cells)); ; i = next(i, len(t.cells)) {
		c := &t.cells[i]
		switch c.hash.Load() {
		case hash:
			if c.holds(key) != nil {
				return i, true
			}
		case goneCell:
			if !haveFree {
				free, haveFree = i, true
			}
		case emptyCell:
			if haveFree {
				return free, false
			}
			return i, false
		}
	}
}

// full reports whether a further record would leave too few empty cells.
func (t *table[T]) full() bool { return t.used+1 > len(t.cells)/4*3 }

// sparse reports whether the table is far larger than its content.
func (t *table[T]) sparse() bool { return len(t.cells) > minCells && t.live < len(t.cells)/8 }

// insert fills a cell that find gave. The record goes in before the hash, so that
// whoever sees the hash sees the record.
func (t *table[T]) insert(at int, hash uint64, r *record[T]) {
	c := &t.cells[at]
	if c.hash.Load() == emptyCell {
		t.used++
	}
	c.put(r)
	c.hash.Store(hash)
	t.live++
}

// remove empties a cell and says what it is now: empty where no probe can need to
// pass it, gone otherwise.
func (t *table[T]) remove(at int) (state uint64) {
	c := &t.cells[at]
	state = goneCell
	if t.cells[next(at, len(t.cells))].hash.Load() == emptyCell {
		state = emptyCell
		t.used--
	}
	c.hash.Store(state)
	c.rec.Store(nil)
	c.key.Store(nil)
	t.live--
	return state
}

// A snapshot cannot use the table, which moves on. It has the same cells as a
// persistent vector of words: slot and half of the hash. An update keeps an object's
// slot and so touches no word.
func word(slot uint32, hash uint64) uint64 {
	return (uint64(slot)+1)<<32 | hash&(1<<32-1)
}

// lookup finds the slot of a key in the words of a snapshot.
func lookup[T any](words *vec[uint64], objects *vec[seat[T]], hash uint64, key object.Key) *record[T] {
	for i := start(hash, words.n); ; i = next(i, words.n) {
		w := words.get(i)
		if w == emptyCell {
			return nil
		}
		if slot := w >> 32; slot != 0 && uint32(w) == uint32(hash) {
			if r := objects.at(int(slot - 1)).rec; r.Key == key {
				return r
			}
		}
	}
}
