package disk

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// setDocument stores a document, compressed and in chunks.
func (w *writer) setDocument(cluster, name string, data []byte) error {
	c, err := w.cluster(cluster)
	if err != nil {
		return err
	}
	w.named[cluster] = true
	prefix := documentPrefix(c.id, name)
	if err := w.drop(prefix); err != nil || data == nil {
		return err
	}
	var buf bytes.Buffer
	z, err := flate.NewWriter(&buf, flate.BestSpeed)
	if err != nil {
		return err
	}
	if _, err := z.Write(data); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	for i := uint32(0); i == 0 || buf.Len() > 0; i++ {
		if err := w.set(binary.BigEndian.AppendUint32(prefix, i), buf.Next(documentChunk)); err != nil {
			return err
		}
	}
	return nil
}

// documentChunk is the size of a part of a document.
const documentChunk = 64 << 10

// readDocument returns a document, or nil if there is none.
func readDocument(r pebble.Reader, cluster uint32, name string) ([]byte, error) {
	var packed []byte
	found := false
	next := uint32(0)
	prefix := documentPrefix(cluster, name)
	err := scan(r, prefix, func(k, v []byte) error {
		if len(k) != len(prefix)+4 || binary.BigEndian.Uint32(k[len(prefix):]) != next {
			return errBadKey
		}
		next, found, packed = next+1, true, append(packed, v...)
		return nil
	})
	if err != nil || !found {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), MaxDocument+1))
	if err != nil || len(data) > MaxDocument {
		return nil, errBadRecord
	}
	return data, nil
}
