package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
)

// The labels of an object's newest state have a record of their own, because most changes leave them as they are.
//
//	time    8 bytes: when the labels became these
//	labels  each a uvarint length and text
//
// If the resource has history and is not sealed, each label also has a posting, so that the objects with a label are
// found without reading others. A posting stays when the object loses the label, as long as the history has a moment
// at which it had it.
func appendLabels(dst []byte, labels []string) []byte {
	for _, l := range labels {
		dst = appendText(dst, l)
	}
	return dst
}

// decodeLabels decodes a record of labels. It keeps no reference to b.
func decodeLabels(b []byte) (at int64, labels []string, err error) {
	d := decoder{rest: b}
	at = int64(d.uint64())
	text := string(d.rest)
	for len(d.rest) > 0 {
		part := d.take(int(min(d.uvarint(), maxLabels)))
		begin := len(text) - len(d.rest) - len(part)
		labels = append(labels, text[begin:begin+len(part)])
	}
	return at, labels, d.end()
}

// maxLabels is more than the bytes that the labels of an object can have.
const maxLabels = 1 << 30

// posted reports whether the resource has postings. Those of a sealed one would show its labels.
func (r *written) posted() bool { return r.desc.history && !r.desc.sealed }

// labelsHash returns the hash of encoded labels; 0 if there are none.
func (w *writer) labelsHash(labels []byte) uint64 {
	if len(labels) == 0 {
		return 0
	}
	return max(1, maphash.Bytes(w.seed, labels))
}

// loadLabels reads the hashes of all labels.
func (w *writer) loadLabels(r *written) error {
	return scan(w.db, appendData(nil, r.desc.id, kindLabels), func(k, v []byte) error {
		v, err := r.seal.open(w.sealed[:0], k, v)
		if err != nil {
			return err
		}
		if len(v) < 8 {
			return errBadRecord
		}
		h := w.hash(k[dataPrefix:])
		n, ok := r.objects[h]
		if !ok {
			return errBadRecord
		}
		n.labels = w.labelsHash(v[8:])
		r.objects[h] = n
		return nil
	})
}

// setLabels writes the labels of an object's newest state if they differ from those before, and returns their hash.
func (w *writer) setLabels(r *written, key string, at int64, labels []string, was uint64) (uint64, error) {
	w.value = appendLabels(binary.BigEndian.AppendUint64(w.value[:0], uint64(at)), labels)
	hash := w.labelsHash(w.value[8:])
	if hash == was {
		return hash, nil
	}
	k := append(appendData(nil, r.desc.id, kindLabels), key...)
	var old []string
	if was != 0 && r.posted() {
		v, err := w.pending(k)
		if err != nil {
			return 0, err
		}
		if _, old, err = decodeLabels(v); err != nil {
			return 0, err
		}
	}
	var err error
	if len(labels) == 0 {
		err = w.out.Delete(k, nil)
	} else {
		w.sealed = r.seal.seal(w.sealed[:0], k, w.value)
		err = w.set(k, w.sealed)
	}
	if err != nil || !r.posted() {
		return hash, err
	}
	return hash, w.post(r, key, at, old, labels)
}

// post adds the postings of labels that an object got, and notes which ones it has lost.
func (w *writer) post(r *written, key string, at int64, old, labels []string) error {
	stamp := binary.BigEndian.AppendUint64(nil, uint64(at))
	for _, l := range labels {
		if strings.IndexByte(l, 0) >= 0 {
			return fmt.Errorf("the label %q has a zero byte", l)
		}
		if slices.Contains(old, l) {
			continue
		}
		if err := w.set(appendPosting(nil, r.desc.id, l, key), stamp); err != nil {
			return err
		}
	}
	for _, l := range old {
		if slices.Contains(labels, l) {
			continue
		}
		number := r.segments[len(r.segments)-1].number
		if err := w.set(appendUnlabel(nil, r.desc.id, number, l, key), stamp); err != nil {
			return err
		}
	}
	return nil
}

// buildPostings writes the postings of a resource whose history begins. Those of labels that the batch has changed
// are made as well; one too many does no harm.
func (w *writer) buildPostings(r *written) error {
	if !r.posted() {
		return nil
	}
	prefix := appendData(nil, r.desc.id, kindLabels)
	add := func(k, v []byte) error {
		at, labels, err := decodeLabels(v)
		if err != nil {
			return err
		}
		return w.post(r, string(stateKey(k)), at, nil, labels)
	}
	type change struct{ key, value []byte }
	var changes []change
	for reader := w.out.Reader(); ; {
		kind, k, v, ok, err := reader.Next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if kind == pebble.InternalKeyKindSet && bytes.HasPrefix(k, prefix) {
			changes = append(changes, change{slices.Clone(k), slices.Clone(v)})
		}
	}
	err := scan(w.db, prefix, add)
	for _, c := range changes {
		err = errors.Join(err, add(c.key, c.value))
	}
	return err
}
