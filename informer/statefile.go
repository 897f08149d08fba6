package informer

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"time"

	"github.com/mirador-k8s/mirador/object"
)

// A saved state is stateHeader, the version, the time of the last event, the number of objects, and for each object its
// key, version, UID, size and encoded bytes. A checksum of all that ends it. Numbers are varints, and texts have their
// length before them.
const stateHeader = "mirador informer state 1\n"

var stateChecksum = crc32.MakeTable(crc32.Castagnoli)

// errDamagedState is wrapped by the errors of ReadState about what was read.
var errDamagedState = errors.New("it is not complete, or damaged; start without it, and the informer lists")

// jsonCodec is for objects without a codec.
func jsonCodec[T any]() *object.Codec[T] {
	return &object.Codec[T]{
		Encode: func(dst []byte, obj T) ([]byte, error) {
			encoded, err := json.Marshal(obj)
			return append(dst, encoded...), err
		},
		Decode: func(encoded []byte) (obj T, err error) { return obj, json.Unmarshal(encoded, &obj) },
	}
}

// Write saves the state, for ReadState. The codec encodes the objects; nil means encoding/json. Write to a new file and
// rename it, so that there is a complete one at any time.
func (s *State[T]) Write(to io.Writer, codec *object.Codec[T]) error {
	if s.Packed != nil {
		return errors.New("save the state: it is packed, and was saved before")
	}
	if codec == nil {
		codec = jsonCodec[T]()
	}
	w := stateWriter{to: bufio.NewWriter(to), sum: crc32.New(stateChecksum)}
	w.bytes([]byte(stateHeader))
	w.text(string(s.Version))
	w.number(lastEventNumber(s.LastEvent))
	w.number(uint64(len(s.Items)))
	var encoded []byte
	for i := range s.Items {
		it := &s.Items[i]
		var err error
		if encoded, err = codec.Encode(encoded[:0], it.Value); err != nil {
			return fmt.Errorf("save the state: encode %s: %w", it.Key, err)
		}
		w.text(string(it.Key))
		w.text(string(it.Version))
		w.text(it.UID)
		w.number(uint64(it.Size))
		w.number(uint64(len(encoded)))
		w.bytes(encoded)
		if w.err != nil {
			break
		}
	}
	w.bytes(binary.BigEndian.AppendUint32(nil, w.sum.Sum32()))
	if w.err == nil {
		w.err = w.to.Flush()
	}
	if w.err != nil {
		return fmt.Errorf("save the state: %w", w.err)
	}
	return nil
}

func lastEventNumber(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(t.UnixNano())
}

// stateWriter writes the parts of a state, until the first error.
type stateWriter struct {
	to  *bufio.Writer
	sum hash.Hash32
	buf []byte
	err error
}

func (w *stateWriter) bytes(b []byte) {
	if w.err == nil {
		w.sum.Write(b)
		_, w.err = w.to.Write(b)
	}
}

func (w *stateWriter) number(n uint64) {
	w.buf = binary.AppendUvarint(w.buf[:0], n)
	w.bytes(w.buf)
}

func (w *stateWriter) text(s string) {
	w.buf = append(binary.AppendUvarint(w.buf[:0], uint64(len(s))), s...)
	w.bytes(w.buf)
}

// ReadState reads what State.Write has saved, with the same codec. It returns an error and no state unless everything
// is as it was saved.
func ReadState[T any](from io.Reader, codec *object.Codec[T]) (*State[T], error) {
	if codec == nil {
		codec = jsonCodec[T]()
	}
	r := stateReader{from: bufio.NewReader(from), sum: crc32.New(stateChecksum)}
	if header := r.bytes(uint64(len(stateHeader))); r.err == nil && string(header) != stateHeader {
		return nil, errors.New("read the state: this is no saved state, or one of another version of the library; start " +
			"without it, and the informer lists")
	}
	s := &State[T]{Version: object.Version(r.text())}
	if at := r.number(); at != 0 {
		s.LastEvent = time.Unix(0, int64(at))
	}
	for n := r.number(); n > 0 && r.err == nil; n-- {
		it := object.Item[T]{Key: object.Key(r.text()), Version: object.Version(r.text()), UID: r.text(),
			Size: int(r.number())}
		encoded := r.bytes(r.number())
		if r.err != nil {
			break
		}
		var err error
		if it.Value, err = codec.Decode(encoded); err != nil {
			return nil, fmt.Errorf("read the state: decode %s: %w (%w)", it.Key, errDamagedState, err)
		}
		s.Items = append(s.Items, it)
	}
	sum := binary.BigEndian.AppendUint32(nil, r.sum.Sum32())
	if saved := r.bytes(4); r.err == nil && !bytes.Equal(saved, sum) {
		r.err = errors.New("the checksum is another")
	}
	if r.err != nil {
		return nil, fmt.Errorf("read the state: %w (%w)", errDamagedState, r.err)
	}
	return s, nil
}

// stateReader reads the parts of a state, until the first error.
type stateReader struct {
	from *bufio.Reader
	sum  hash.Hash32
	err  error
}

// ReadByte implements io.ByteReader.
func (r *stateReader) ReadByte() (byte, error) {
	b, err := r.from.ReadByte()
	if err == nil {
		r.sum.Write([]byte{b})
	}
	return b, err
}

func (r *stateReader) number() (n uint64) {
	if r.err == nil {
		n, r.err = binary.ReadUvarint(r)
	}
	return n
}

// bytes reads n bytes. It allocates them while they arrive, because a damaged length may be any number.
func (r *stateReader) bytes(n uint64) []byte {
	if r.err != nil {
		return nil
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r.from, int64(min(n, 1<<62))); err != nil {
		r.err = fmt.Errorf("it ends too soon: %w", err)
		return nil
	}
	r.sum.Write(b.Bytes())
	return b.Bytes()
}

func (r *stateReader) text() string { return string(r.bytes(r.number())) }
