package share

import (
	"encoding/binary"
	"slices"
)

// Uses are the entries of a table that an object uses: what Share counted, and what Release takes back. The object
// itself is not read for that. Readers have it by then, and if one writes to a map of it by mistake while the table
// reads the map, the runtime ends the process. Uses of different tables must not be mixed.
//
// The encoding is the sorted numbers of the entries, each as the difference to the one before.
type Uses string

// keptWhole is for an object with cycles. There is no entry 0.
const keptWhole Uses = "\x00"

// each calls f once for each use of an entry.
func (u Uses) each(f func(id uint32)) {
	at := uint64(0)
	for len(u) > 0 {
		delta, n := binary.Uvarint([]byte(u[:min(len(u), binary.MaxVarintLen32)]))
		at += delta
		f(uint32(at))
		u = u[n:]
	}
}

// Release states that an object that Share returned with these uses is no longer stored. Parts that no stored object
// uses leave the table; the garbage collector frees them when no reader refers to them.
func (t *Table) Release(uses Uses) {
	t.objects--
	if uses == keptWhole {
		t.kept--
	} else {
		uses.each(t.drop)
	}
	t.shrink()
	if t.objects == 0 {
		t.seen = sightings{}
	}
}

// since removes and returns the uses that were counted after the first n: those of one part.
func (t *Table) since(n int) Uses {
	if n == len(t.uses) {
		return ""
	}
	ids := t.uses[n:]
	slices.Sort(ids)
	t.encoded = t.encoded[:0]
	last := uint32(0)
	for _, id := range ids {
		t.encoded = binary.AppendUvarint(t.encoded, uint64(id-last))
		last = id
	}
	t.uses = t.uses[:n]
	return Uses(t.encoded)
}

// drop removes one use of an entry. Without uses the entry leaves the table, and the uses of other entries by it are
// dropped.
func (t *Table) drop(id uint32) {
	e := &t.entries[id]
	if e.refs--; e.refs > 0 {
		return
	}
	below := e.uses
	t.remove(id)
	below.each(t.drop)
}
