package pack

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"sync"

	"github.com/klauspost/compress/huff0"
)

// maxLength is the length from which objects are stored plain, and the largest length that data can claim.
const maxLength = 1 << 30

var (
	errDamaged = errors.New("packed data is damaged or belongs to another base")
	errCheck   = errors.New("unpacked data differs from what was packed: damaged data or another context")
)

var checkTable = crc32.MakeTable(crc32.Castagnoli)

// check does not depend on the process, because packed data may be kept on disk.
func check(original []byte) uint32 {
	return crc32.Checksum(original, checkTable) & (1<<(8*checkSize) - 1)
}

// A coder makes packed data. All its fields are scratch.
type coder struct {
	differ
	steps []byte
	huff  *huff0.Scratch
}

// append appends the packed form of original to dst, as a difference to the base that was set last. shape is the shape
// of the base, or "". c.ops are the ops afterwards.
func (c *coder) append(dst, original []byte, shape, ctx string) []byte {
	start := len(dst)
	if len(original) < maxLength && len(original) > 0 {
		c.diff(original, ctx)
		dst = c.appendCoded(dst, original, shape)
	}
	if size := len(dst) - start; size == 0 || size > headerSize+len(original) {
		dst = append(appendHeader(dst[:start], flagPlain, original), original...)
	}
	return dst
}

func appendHeader(dst []byte, flags byte, original []byte) []byte {
	sum := check(original)
	return append(dst, flags, byte(sum), byte(sum>>8), byte(sum>>16))
}

func (c *coder) appendCoded(dst, original []byte, shape string) []byte {
	flagsAt := len(dst)
	dst = appendHeader(dst, 0, original)
	dst = binary.AppendUvarint(dst, zigzag(len(original)-len(c.base)))

	ops := c.ops
	c.steps = c.steps[:0]
	if shape != "" {
		c.steps = appendShaped(c.steps, shape, ops)
		if len(c.steps) < len(ops) {
			dst[flagsAt] |= flagShaped
			ops = c.steps
		} else {
			c.steps = c.steps[:0]
		}
	}
	if c.huff == nil && max(len(ops), len(c.lits)) >= huffMin {
		c.huff = new(huff0.Scratch)
	}
	used := len(c.steps)
	var ok bool
	if c.steps, ok = appendHuffed(c.steps, ops, c.huff); ok {
		dst[flagsAt] |= flagOpsHuffed
		ops = c.steps[used:]
	}
	dst = binary.AppendUvarint(dst, uint64(len(ops)))
	dst = append(dst, ops...)
	if dst, ok = appendHuffed(dst, c.lits, c.huff); ok {
		dst[flagsAt] |= flagLiteralsHuffed
	} else {
		dst = append(dst, c.lits...)
	}
	return dst
}

// originalLen reads the length of the original from packed data.
func originalLen(data string, baseLen int) (int, bool) {
	if len(data) < headerSize {
		return 0, false
	}
	if data[0]&flagPlain != 0 {
		return len(data) - headerSize, true
	}
	var head [binary.MaxVarintLen64]byte
	u, w := binary.Uvarint(head[:copy(head[:], data[headerSize:])])
	n := baseLen + unzigzag(u)
	return n, w > 0 && n >= 0 && n <= maxLength
}

// A reading is the scratch memory for decoding one object.
type reading struct {
	data, ops, unshaped, lits []byte
	bases                     [maxDepth + 1][]byte
	of                        [maxDepth + 1]uint64 // the IDs of the bases: a list reads siblings one after the other
}

var readings = sync.Pool{New: func() any { return new(reading) }}

// maxKept is the largest capacity of a buffer that goes back to the pool.
const maxKept = 1 << 18

func (r *reading) done() {
	if r.largest() <= maxKept {
		readings.Put(r)
	}
}

// largest returns the capacity of the largest buffer.
func (r *reading) largest() int {
	most := max(cap(r.data), cap(r.ops), cap(r.unshaped), cap(r.lits))
	for i := range r.bases {
		most = max(most, cap(r.bases[i]))
	}
	return most
}

// append appends the original of data to dst. base are the bytes of the base; shapes is the base that has the shape,
// or nil.
func (r *reading) append(dst []byte, data string, base []byte, shapes *base, ctx string,
	unchecked bool) ([]byte, error) {
	start := len(dst)
	n, ok := originalLen(data, len(base))
	if !ok {
		return dst, errDamaged
	}
	if flags := data[0]; flags&flagPlain != 0 {
		dst = append(dst, data[headerSize:]...)
	} else {
		r.data = append(r.data[:0], data[headerSize:]...)
		ops, lits, ok := r.streams(flags, shapes)
		if !ok {
			return dst, errDamaged
		}
		// A damaged length must not allocate a huge buffer. For a long object the buffer grows later.
		dst = slices.Grow(dst, min(n, 2*len(base)+1<<16))
		if dst, ok = apply(dst, n, base, ctx, ops, lits); !ok {
			return dst[:start], errDamaged
		}
	}
	if unchecked {
		return dst, nil
	}
	sum := check(dst[start:])
	if data[1] != byte(sum) || data[2] != byte(sum>>8) || data[3] != byte(sum>>16) {
		return dst[:start], errCheck
	}
	return dst, nil
}

// streams splits r.data into ops and literals.
func (r *reading) streams(flags byte, shapes *base) (ops, lits []byte, ok bool) {
	data := r.data
	_, w := binary.Uvarint(data) // the length, which originalLen has read
	data = data[max(w, 0):]
	size, w := binary.Uvarint(data)
	if w <= 0 || size > uint64(len(data)-w) {
		return nil, nil, false
	}
	ops, lits = data[w:w+int(size)], data[w+int(size):]
	if flags&flagOpsHuffed != 0 {
		if r.ops, ok = appendUnhuffed(r.ops[:0], ops); !ok {
			return nil, nil, false
		}
		ops = r.ops
	}
	if flags&flagShaped != 0 {
		var shape *string
		if shapes != nil {
			shape = shapes.shape.Load()
		}
		if shape == nil {
			return nil, nil, false
		}
		if r.unshaped, ok = appendUnshaped(r.unshaped[:0], *shape, ops); !ok {
			return nil, nil, false
		}
		ops = r.unshaped
	}
	if flags&flagLiteralsHuffed != 0 {
		if r.lits, ok = appendUnhuffed(r.lits[:0], lits); !ok {
			return nil, nil, false
		}
		lits = r.lits
	}
	return ops, lits, true
}
