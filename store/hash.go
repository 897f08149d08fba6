package store

import (
	"hash/maphash"
	"sync/atomic"

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
	mask  uint64
	cells []cell[T]
	live  int // cells with a record
	used  int // cells that are not empty: a quarter is always empty, so probing ends
}

type cell[T any] struct {
	hash atomic.Uint64
	rec  atomic.Pointer[record[T]]
}

const minCells = 16

// newTable makes a table with room for n records and at least n/4 changes more, so
// that the next rebuild is far away.
func newTable[T any](n int) *table[T] {
	size := minCells
	for size < n+n/2+n/4 {
		size *= 2
	}
	return &table[T]{mask: uint64(size - 1), cells: make([]cell[T], size)}
}

// get is the readers' side.
func (t *table[T]) get(hash uint64, key object.Key) *record[T] {
	for i := hash & t.mask; ; i = (i + 1) & t.mask {
		c := &t.cells[i]
		switch c.hash.Load() {
		case hash:
			if r := c.rec.Load(); r != nil && r.Key == key {
				return r
			}
		case emptyCell:
			return nil
		}
	}
}

// find gives the cell of a key or, where there is none, the cell to put it in.
func (t *table[T]) find(hash uint64, key object.Key) (at uint64, found bool) {
	free, haveFree := uint64(0), false
	for i := hash & t.mask; ; i = (i + 1) & t.mask {
		c := &t.cells[i]
		switch c.hash.Load() {
		case hash:
			if c.rec.Load().Key == key {
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
func (t *table[T]) insert(at, hash uint64, r *record[T]) {
	c := &t.cells[at]
	if c.hash.Load() == emptyCell {
		t.used++
	}
	c.rec.Store(r)
	c.hash.Store(hash)
	t.live++
}

// remove empties a cell and says what it is now: empty where no probe can need to
// pass it, gone otherwise.
func (t *table[T]) remove(at uint64) (state uint64) {
	c := &t.cells[at]
	state = goneCell
	if t.cells[(at+1)&t.mask].hash.Load() == emptyCell {
		state = emptyCell
		t.used--
	}
	c.hash.Store(state)
	c.rec.Store(nil)
	t.live--
	return state
}

// A snapshot cannot use the table, which moves on. It has the same cells as a
// persistent vector of words: slot and half of the hash. An update keeps an object's
// slot and so touches no word.
func word(slot uint32, hash uint64) uint64 {
	return (uint64(slot)+1)<<32 | hash>>32
}

// lookup finds the slot of a key in the words of a snapshot.
func lookup[T any](words *vec[uint64], objects *vec[*record[T]], hash uint64, key object.Key) *record[T] {
	mask := words.n - 1
	for i := int(hash & uint64(mask)); ; i = (i + 1) & mask {
		w := words.get(i)
		if w == emptyCell {
			return nil
		}
		if slot := w >> 32; slot != 0 && w&(1<<32-1) == hash>>32 {
			if r := objects.get(int(slot - 1)); r.Key == key {
				return r
			}
		}
	}
}
