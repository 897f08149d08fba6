package disk

import (
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// collect removes the bases of a resource that no state needs. It reads the newest and the carried states; what the
// history uses is listed by segment. The writer goes on meanwhile, and lists what it uses.
func (d *Disk) collect(res Resource, id uint32) error {
	snap, done, err := d.beginCollection(res)
	if err != nil {
		return fmt.Errorf("look for unused bases of %s: %w", res, err)
	}
	defer done()
	unused, err := d.unusedBases(snap, id)
	if err == nil && len(unused) > 0 {
		err = d.maintain(res, id, func(w *writer, r *written) error { return w.removeBases(r, unused) })
	}
	if err != nil {
		return fmt.Errorf("remove unused bases of %s: %w", res, err)
	}
	return nil
}

// beginCollection makes the writer list the bases that it uses from the snapshot on.
func (d *Disk) beginCollection(res Resource) (*pebble.Snapshot, func(), error) {
	d.writing.Lock()
	defer d.writing.Unlock()
	if r := d.writer.resources[res]; r != nil {
		r.used, r.newBases = map[uint32]bool{}, 0
	}
	return d.snapshot()
}

// unusedBases returns the IDs of the bases that nothing in the snapshot uses, by number.
func (d *Disk) unusedBases(snap *pebble.Snapshot, id uint32) (map[uint32]uint64, error) {
	desc := descriptor{}
	found := false
	err := eachResource(snap, func(_ Resource, have *descriptor) error {
		if have.id == id {
			desc, found = *have, true
		}
		return nil
	})
	if err != nil || !found {
		return nil, err
	}
	seal, err := newSeal(d.opts.Key, &desc)
	if err != nil {
		return nil, err
	}
	used := map[uint32]bool{}
	err = scan(snap, appendData(nil, id, kindUse), func(k, _ []byte) error {
		if len(k) != segmentPrefix+4 {
			return errBadKey
		}
		used[binary.BigEndian.Uint32(k[segmentPrefix:])] = true
		return nil
	})
	for _, kind := range []byte{kindState, kindCarried} {
		if err != nil {
			return nil, err
		}
		err = scan(snap, appendData(nil, id, kind), func(k, v []byte) error {
			v, err := seal.open(nil, k, v)
			if err != nil {
				return err
			}
			r, err := decodeRecord(v)
			used[r.base] = true
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	unused, parents := map[uint32]uint64{}, map[uint32]bool{}
	err = scan(snap, appendData(nil, id, kindBase), func(k, v []byte) error {
		r, err := openBase(seal, k, v)
		if err != nil {
			return err
		}
		if n := binary.BigEndian.Uint32(k[dataPrefix:]); used[n] {
			parents[r.parent] = true
		} else {
			unused[n] = r.id
		}
		return nil
	})
	for n := range parents {
		delete(unused, n)
	}
	return unused, err
}

// removeBases removes those of the bases that were not used since the collection began.
func (w *writer) removeBases(r *written, unused map[uint32]uint64) error {
	loaded := w.resources[r.res] == r
	if loaded && r.used == nil {
		return nil // the writer was replaced meanwhile
	}
	for n, id := range unused {
		if r.used[n] {
			continue
		}
		if err := w.out.Delete(appendBase(nil, r.desc.id, n), nil); err != nil {
			return err
		}
		delete(r.bases, id)
	}
	r.used = nil
	return nil
}
