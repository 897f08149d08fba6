package disk

import (
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/mirador-k8s/mirador/store"
)

// A base of packed objects is stored once per resource, under a small number that begins at 1.
//
//	id      8 bytes, the base's ID
//	parent  uvarint: number of the parent, 0 if there is none
//	length  uvarint
//	shape   uvarint length and text
//	data    the rest
type baseRecord struct {
	id     uint64
	parent uint32
	length int
	shape  string
	data   string
}

func (r *baseRecord) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, r.id)
	dst = binary.AppendUvarint(dst, uint64(r.parent))
	dst = binary.AppendUvarint(dst, uint64(r.length))
	return append(appendText(dst, r.shape), r.data...)
}

func decodeBase(b []byte) (r baseRecord, err error) {
	d := decoder{rest: b}
	r.id = d.uint64()
	parent, length := d.uvarint(), d.uvarint()
	if parent >= 1<<32 || length >= 1<<32 {
		return baseRecord{}, errBadRecord
	}
	r.parent, r.length = uint32(parent), int(length)
	r.shape = d.text()
	r.data = string(d.rest)
	if d.bad {
		return baseRecord{}, errBadRecord
	}
	return r, nil
}

// keptBase is what the writer knows of a stored base.
type keptBase struct {
	number uint32
	parent uint32
	shape  bool // it was written with its shape
}

// loadKept returns the bases of a resource by their IDs, and the largest number.
func loadKept(r pebble.Reader, id uint32, seal *seal) (bases map[uint64]*keptBase, last uint32, err error) {
	bases = map[uint64]*keptBase{}
	err = scan(r, appendData(nil, id, kindBase), func(k, v []byte) error {
		rec, err := openBase(seal, k, v)
		if err != nil {
			return err
		}
		number := binary.BigEndian.Uint32(k[dataPrefix:])
		bases[rec.id] = &keptBase{number: number, shape: rec.shape != "", parent: rec.parent}
		last = max(last, number)
		return nil
	})
	return bases, last, err
}

func openBase(seal *seal, k, v []byte) (baseRecord, error) {
	if len(k) != dataPrefix+4 {
		return baseRecord{}, errBadKey
	}
	v, err := seal.open(nil, k, v)
	if err != nil {
		return baseRecord{}, err
	}
	return decodeBase(v)
}

// readBases makes stored objects readable. Bases are read when they are needed, or before that by readAhead.
type readBases struct {
	r      pebble.Reader
	id     uint32
	seal   *seal
	packed *store.PackedBases
	ahead  map[uint32]baseRecord
	loaded map[uint32]*store.PackedBase
	key    []byte
}

func newReadBases(r pebble.Reader, id uint32, seal *seal) *readBases {
	return &readBases{r: r, id: id, seal: seal, packed: store.NewPackedBases(), loaded: map[uint32]*store.PackedBase{}}
}

// readAhead reads the records of all bases at once, which takes less time than a lookup for each. Those that it cannot
// read are looked up if a state needs them.
func (b *readBases) readAhead() {
	b.ahead = map[uint32]baseRecord{}
	_ = scan(b.r, appendData(nil, b.id, kindBase), func(k, v []byte) error { // the lookup has the error
		if rec, err := openBase(b.seal, k, v); err == nil {
			b.ahead[binary.BigEndian.Uint32(k[dataPrefix:])] = rec
		}
		return nil
	})
}

// record returns the record of a base.
func (b *readBases) record(number uint32) (baseRecord, error) {
	if rec, ok := b.ahead[number]; ok {
		return rec, nil
	}
	b.key = appendBase(b.key[:0], b.id, number)
	v, err := get(b.r, b.key)
	if err == nil && v == nil {
		err = errBadRecord
	}
	if err != nil {
		return baseRecord{}, err
	}
	return openBase(b.seal, b.key, v)
}

// base returns the base of a number, nil for 0.
func (b *readBases) base(number uint32) (*store.PackedBase, error) { return b.load(number, 0) }

// maxParents is more than the number of parents that a base can have, so that damage cannot make a circle.
const maxParents = 8

func (b *readBases) load(number uint32, depth int) (*store.PackedBase, error) {
	if number == 0 {
		return nil, nil
	}
	if base := b.loaded[number]; base != nil {
		return base, nil
	}
	rec, err := b.record(number)
	if err == nil && depth > maxParents {
		err = errBadRecord
	}
	if err != nil {
		return nil, fmt.Errorf("read the base %d of packed objects: %w", number, err)
	}
	parent, err := b.load(rec.parent, depth+1)
	if err != nil {
		return nil, err
	}
	base, err := b.packed.Restore(rec.id, parent, rec.data, rec.shape, rec.length)
	if err != nil {
		return nil, fmt.Errorf("read the base %d of packed objects: %w", number, err)
	}
	b.loaded[number] = base
	return base, nil
}

// state makes the state of a record.
func (b *readBases) state(key string, r *record) (s State, err error) {
	base, err := b.base(r.base)
	if err != nil {
		return s, err
	}
	return stateOf(key, r, b.packed.Packed(base, r.data)), nil
}
