package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/mirador-k8s/mirador/object"
)

// A clusterRecord is what is stored of a cluster.
type clusterRecord struct {
	id      uint32
	uid     string
	written int64
}

func (c *clusterRecord) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, c.id)
	return binary.BigEndian.AppendUint64(appendText(dst, c.uid), uint64(c.written))
}

func decodeCluster(b []byte) (c clusterRecord, err error) {
	d := decoder{rest: b}
	c.id = d.uint32()
	c.uid = d.text()
	c.written = int64(d.uint64())
	return c, d.end()
}

// A descriptor is what does not change of a resource. A resource whose data is dropped gets another ID, so that what
// is left of the old one can never be read as its own.
type descriptor struct {
	id          uint32
	fingerprint string
	history     bool
	sealed      bool
	salt        []byte // of a sealed resource
	check       []byte // of a sealed resource: tells another key
}

func (r *descriptor) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, r.id)
	dst = appendText(dst, r.fingerprint)
	dst = append(dst, flag(r.history)|flag(r.sealed)<<1)
	return appendText(appendText(dst, string(r.salt)), string(r.check))
}

func decodeDescriptor(b []byte) (r descriptor, err error) {
	d := decoder{rest: b}
	r.id = d.uint32()
	r.fingerprint = d.text()
	flags := d.byte()
	r.history, r.sealed = flags&1 != 0, flags&2 != 0
	r.salt, r.check = []byte(d.text()), []byte(d.text())
	return r, d.end()
}

// progress is how far a resource has been written.
type progress struct {
	version object.Version
	reached int64 // 0: the resource was never complete
	begin   int64 // since when the history is complete; 0: it is not
	last    int64 // time of the last change
	objects uint64
	pausing int64 // since when history is paused; 0: it is not
}

// settled returns a moment before all later changes. It has the newest state.
func (p *progress) settled() int64 { return max(p.last, p.begin) }

func (p *progress) append(dst []byte) []byte {
	dst = appendText(dst, string(p.version))
	for _, n := range []int64{p.reached, p.begin, p.last, int64(p.objects), p.pausing} {
		dst = binary.BigEndian.AppendUint64(dst, uint64(n))
	}
	return dst
}

func decodeProgress(b []byte) (p progress, err error) {
	d := decoder{rest: b}
	p.version = object.Version(d.text())
	p.reached, p.begin, p.last = int64(d.uint64()), int64(d.uint64()), int64(d.uint64())
	p.objects, p.pausing = d.uint64(), int64(d.uint64())
	return p, d.end()
}

// A segment holds the history of a resource from a time to the start of the next segment. History is dropped by
// segments.
type segment struct {
	number   uint32
	start    int64
	dropping bool   // its last states are being carried over
	changes  uint64 // states and deletions
	bytes    uint64 // of their records
}

func (s *segment) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(s.start))
	dst = binary.AppendUvarint(append(dst, flag(s.dropping)), s.changes)
	return binary.AppendUvarint(dst, s.bytes)
}

func decodeSegment(number uint32, b []byte) (s segment, err error) {
	d := decoder{rest: b}
	s.number = number
	s.start = int64(d.uint64())
	s.dropping = d.byte() != 0
	s.changes, s.bytes = d.uvarint(), d.uvarint()
	return s, d.end()
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func (d *decoder) uint32() uint32 {
	if b := d.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// end returns an error if fields were missing or bytes are left.
func (d *decoder) end() error {
	if d.bad || len(d.rest) != 0 {
		return errBadRecord
	}
	return nil
}

// get returns a copy of a value, or nil if there is none.
func get(r pebble.Reader, key []byte) ([]byte, error) {
	v, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v = append(make([]byte, 0, len(v)), v...)
	return v, closer.Close()
}

// scan calls do for every key that begins with prefix. Key and value are valid during the call.
func scan(r pebble.Reader, prefix []byte, do func(key, value []byte) error) error {
	return scanRange(r, prefix, after(prefix), do)
}

func scanRange(r pebble.Reader, from, to []byte, do func(key, value []byte) error) (err error) {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if err := do(it.Key(), v); err != nil {
			return err
		}
	}
	return nil
}

// loadDescriptor returns a resource's descriptor; ok is false if nothing is kept of the resource.
func loadDescriptor(r pebble.Reader, res Resource) (d descriptor, ok bool, err error) {
	b, err := get(r, resourceKey(res))
	if err != nil || b == nil {
		return d, false, err
	}
	d, err = decodeDescriptor(b)
	return d, err == nil, err
}

func loadProgress(r pebble.Reader, id uint32) (p progress, err error) {
	b, err := get(r, appendData(nil, id, kindProgress))
	if err != nil || b == nil {
		return p, err
	}
	return decodeProgress(b)
}

// loadSegments returns the segments of a resource, oldest first.
func loadSegments(r pebble.Reader, id uint32) (segments []segment, err error) {
	err = scan(r, appendData(nil, id, kindSegment), func(k, v []byte) error {
		if len(k) != segmentPrefix {
			return errBadKey
		}
		s, err := decodeSegment(binary.BigEndian.Uint32(k[dataPrefix:]), v)
		segments = append(segments, s)
		return err
	})
	return segments, err
}

// loadCluster returns a cluster's record; ok is false if there is none.
func loadCluster(r pebble.Reader, name string) (c clusterRecord, ok bool, err error) {
	b, err := get(r, clusterKey(name))
	if err != nil || b == nil {
		return c, false, err
	}
	c, err = decodeCluster(b)
	return c, err == nil, err
}

// nanos returns the time as it is stored: between 1970 and 2262.
func nanos(t time.Time) int64 {
	switch {
	case t.Unix() <= 0:
		return 1
	case t.Unix() >= math.MaxInt64/int64(time.Second):
		return math.MaxInt64 - 1
	}
	return t.UnixNano()
}

// instant is the opposite of nanos. 0 is the zero time.
func instant(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n)
}

// DamageError says that stored bytes are not those that were written, or that they cannot be read.
type DamageError struct {
	// What names the damaged part.
	What string
	Err  error
}

// Error returns what is damaged and how to go on.
func (e *DamageError) Error() string {
	return fmt.Sprintf("%s is damaged: %s; `mirador data verify` lists all damage", e.What, firstLine(e.Err))
}

// firstLine returns the text of an error without the details that pebble adds to it.
func firstLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

// Unwrap returns the cause.
func (e *DamageError) Unwrap() error { return e.Err }
