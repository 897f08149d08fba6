package fleet

import "encoding/binary"

// decoder reads values from bytes that may be damaged. From the first bad value on, all are zero.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) number() uint64 {
	n, size := binary.Uvarint(d.b)
	return takeInteger(d, n, size)
}

func (d *decoder) signed() int64 {
	n, size := binary.Varint(d.b)
	return takeInteger(d, n, size)
}

func takeInteger[T int64 | uint64](d *decoder, n T, size int) T {
	if d.bad = d.bad || size <= 0; d.bad {
		return 0
	}
	d.b = d.b[size:]
	return n
}

func (d *decoder) text() string {
	n := d.number()
	if d.bad = d.bad || n > uint64(len(d.b)); d.bad {
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

func (d *decoder) byte() byte {
	if d.bad = d.bad || len(d.b) == 0; d.bad {
		return 0
	}
	b := d.b[0]
	d.b = d.b[1:]
	return b
}
