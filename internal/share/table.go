package share

import (
	"reflect"
	"unsafe"
)

// A Table holds the parts that stored objects have in common. One goroutine may use it at a time. Readers of the
// objects need no lock: the table never writes to what it has returned.
type Table struct {
	walker
	cloner
	index
	seen    sightings
	twins   *[64]twin
	next    int32    // the next node of the walk
	owned   bool     // the current object may be written to
	inEntry bool     // the part that is walked becomes an entry
	uses    []uint32 // the entries that the current object uses
	encoded []byte   // scratch of since
	objects int
	kept    int
}

// NewTable returns an empty table.
func NewTable() *Table { return &Table{} }

// Stats describes the contents of a table.
type Stats struct {
	Objects int // stored objects: shared and not yet released
	Kept    int // stored objects that share nothing because they have cycles
	Entries int // parts in the table
	Uses    int // references to entries, by objects and by other entries
	Bytes   int // memory of the table itself, without the parts
}

// Stats counts the contents of the table. It takes time in proportion to the number of entries.
func (t *Table) Stats() Stats {
	s := Stats{Objects: t.objects, Entries: t.used, Kept: t.kept}
	for i := range t.entries {
		if t.entries[i].plan != nil {
			s.Uses += int(t.entries[i].refs)
		}
	}
	s.Bytes = int(unsafe.Sizeof(*t)) + t.index.bytes() + t.seen.bytes() + t.walker.bytes()
	if t.twins != nil {
		s.Bytes += int(unsafe.Sizeof(*t.twins))
	}
	return s
}

// Share returns an object that is Equal to obj and whose parts are the table's where the table has equal ones. If
// owned is set, no other code refers to obj or anything below it, and obj is changed in place; otherwise obj stays as
// it is and what has to change is copied. Slices of the result have no capacity beyond their length. The result is
// read-only, and counts as stored until its uses are passed to Release. The table never reads it.
func (t *Table) Share(obj any, owned bool) (any, Uses) {
	t.objects++
	if obj == nil {
		return nil, ""
	}
	t.seen.fit(t.objects)
	defer t.done()
	t.owned, t.next = owned, 0
	t.hashAny(obj)
	if t.over {
		t.kept++
		return obj, keptWhole
	}
	t.unbound() // the object has no cycles
	if p := planOf(reflect.TypeOf(obj)); p.isPointer() {
		if elem, to := p.pointee(obj); to != nil {
			t.next = 1 // the object itself never becomes an entry
			f := frame{p: elem, at: to, n: 1, own: owned}
			t.shareMem(&f, elem.nodes, 0)
			if f.at != to {
				obj = p.pointerTo(f.at)
			}
		}
	} else {
		obj, _ = t.shareAny(obj)
	}
	return obj, t.since(0)
}

func (t *Table) done() {
	t.uses = t.uses[:0]
	if t.twins != nil {
		clear(t.twins[:])
	}
	t.walker.reset()
}
