package share

import (
	"encoding/binary"
	"slices"
)

// Uses says which parts of a table an object uses: what Share counted, and what Release
// takes back. The object itself is not looked at again, for readers have it by then, and
// one that writes to it, by mistake, would end the process: the runtime does not
// survive a map that is written to while it is read. Uses of different tables must not be mixed.
//
// They are the numbers of the entries in their order, each as the difference to the one before: some 90 bytes
// for a pod.
type Uses string

// keptWhole stands for an object whose pointers run in circles. There is no entry 0.
const keptWhole Uses = "\x00"

// each calls f with every entry that is used, as often as it is.
func (u Uses) each(f func(id uint32)) {
	at := uint64(0)
	for len(u) > 0 {
		delta, n := binary.Uvarint([]byte(u[:min(len(u), binary.MaxVarintLen32)]))
		at += delta
		f(uint32(at))
		u = u[n:]
	}
}

// Release says that an object that Share returned with these uses is stored no longer. Parts that
// no stored object uses leave the table; the collector frees them when the last reader is gone.
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

// since takes the uses that were counted after the first n: those of one part.
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

// drop gives up one use of an entry. With the last one it leaves the table and gives
// up what it uses itself.
func (t *Table) drop(id uint32) {
	e := &t.entries[id]
	if e.refs--; e.refs > 0 {
		return
	}
	below := e.uses
	t.remove(id)
	below.each(t.drop)
}
