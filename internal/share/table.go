package share

import (
	"reflect"
	"unsafe"
)

// A Table holds the parts that stored objects have in common. One goroutine uses it at a
// time; readers of the objects need no lock and never meet it.
type Table struct {
	walker
	cloner
	index
	seen    sightings
	twins   *[64]twin
	next    int32    // the node that a walk comes to next
	owned   bool     // the object in hand may be written to
	inEntry bool     // what is walked becomes an entry
	uses    []uint32 // the entries that the object in hand uses
	encoded []byte   // scratch of since
	objects int
	kept    int
	root    any
}

// NewTable returns an empty table. It takes a few kilobytes and grows with what it holds.
func NewTable() *Table { return &Table{} }

// Stats says what a table holds.
type Stats struct {
	Objects int // stored objects: shared and not yet released
	Kept    int // those of them that were kept as they came, since their pointers run in circles
	Entries int // parts in the table
	Uses    int // references to entries, by objects and by other entries
	Bytes   int // memory of the table itself, without the parts
}

// Stats counts what the table holds. It takes time in proportion to the entries.
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

// Share returns an object that is Equal to obj and whose parts are the table's where the
// table has equal ones. If owned, nobody else holds obj or anything below it, and
// it is changed in place; otherwise it is left alone and what has to change is copied.
// Slices of the result have no room beyond their length. The result is counted
// until its uses are given to Release, and it is read-only; the table never looks at it again.
func (t *Table) Share(obj any, owned bool) (any, Uses) {
	if obj == nil {
		t.objects++
		return nil, ""
	}
	t.objects++
	t.seen.fit(t.objects)
	defer t.done()
	t.owned, t.next = owned, 0
	t.root = obj
	t.hashInterface(&anyOp, unsafe.Pointer(&t.root))
	if t.over {
		t.kept++
		return obj, keptWhole
	}
	t.unbound() // it has an end
	if p, at := t.pointee(); p != nil {
		t.next = 1 // the object itself is never one of the table's
		f := frame{p: p, at: at, n: 1, own: owned}
		t.shareMem(&f, p.nodes, 0)
		(*eface)(unsafe.Pointer(&t.root)).data = f.at
	} else {
		f := frame{p: anyPlan, at: unsafe.Pointer(&t.root), n: 1, own: true}
		t.shareMem(&f, anyPlan.nodes, 0)
	}
	return t.root, t.since(0)
}

// Update stores an object in place of another that had these uses: parts that they
// have in common stay in the table throughout.
func (t *Table) Update(old Uses, obj any, owned bool) (any, Uses) {
	shared, uses := t.Share(obj, owned)
	t.Release(old)
	return shared, uses
}

// pointee returns what the root points at, if it is a pointer that plans look through.
func (t *Table) pointee() (*plan, unsafe.Pointer) {
	at := (*eface)(unsafe.Pointer(&t.root)).data
	p := dynamic(&anyOp, unsafe.Pointer(&t.root))
	if p.kind != reflect.Pointer || at == nil || p.ops[0].kind != opPointer || p.ops[0].elem.size == 0 {
		return nil, nil
	}
	return p.ops[0].elem, at
}

func (t *Table) done() {
	t.root = nil
	t.uses = t.uses[:0]
	if t.twins != nil {
		clear(t.twins[:])
	}
	t.walker.reset()
}
