package disk

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"

	"github.com/mirador-k8s/mirador/object"
)

// A record is a state or a deletion as it is stored. The record's key has the object's key.
//
//	flags    1 byte
//	time     8 bytes, only in the kinds whose key has no time
//	base     uvarint: number of the base, 0 if there is none; not in a deletion
//	uid      16 bytes, or uvarint length and text; not in a deletion
//	version  uvarint, or uvarint length and text
//	size     uvarint; not in a deletion
//	data     the rest
type record struct {
	flags   byte
	time    int64
	base    uint32
	uid     string
	version object.Version
	size    int
	data    string
}

const (
	flagDeletion    = 1 << 0
	flagTime        = 1 << 1
	flagUIDText     = 1 << 2 // the UID is not the text of a UUID
	flagVersionText = 1 << 3 // the version is not a number of at most 64 bits
	flagUnrecorded  = 1 << 4 // of a newest state: the history does not have it
	knownFlags      = 1<<5 - 1
)

// append appends the encoded record. The flags for the form of UID and version are set here.
func (r *record) append(dst []byte) []byte {
	flags := r.flags &^ (flagUIDText | flagVersionText)
	var uuid [16]byte
	deletion := flags&flagDeletion != 0
	if !deletion && !parseUUID(&uuid, r.uid) {
		flags |= flagUIDText
	}
	number, numeric := parseVersion(string(r.version))
	if !numeric {
		flags |= flagVersionText
	}
	dst = append(dst, flags)
	if flags&flagTime != 0 {
		dst = binary.BigEndian.AppendUint64(dst, uint64(r.time))
	}
	if !deletion {
		dst = binary.AppendUvarint(dst, uint64(r.base))
		if flags&flagUIDText != 0 {
			dst = appendText(dst, r.uid)
		} else {
			dst = append(dst, uuid[:]...)
		}
	}
	if numeric {
		dst = binary.AppendUvarint(dst, number)
	} else {
		dst = appendText(dst, string(r.version))
	}
	if deletion {
		return dst
	}
	return append(binary.AppendUvarint(dst, uint64(r.size)), r.data...)
}

// decodeRecord decodes what append made. It keeps no reference to b.
func decodeRecord(b []byte) (r record, err error) {
	d := decoder{rest: b}
	r.flags = d.byte()
	if r.flags&^knownFlags != 0 {
		return record{}, errBadRecord
	}
	if r.flags&flagTime != 0 {
		r.time = int64(d.uint64())
	}
	deletion := r.flags&flagDeletion != 0
	if !deletion {
		base := d.uvarint()
		if base > 1<<32-1 {
			return record{}, errBadRecord
		}
		r.base = uint32(base)
		if r.flags&flagUIDText != 0 {
			r.uid = d.text()
		} else {
			r.uid = formatUUID(d.take(16))
		}
	}
	if r.flags&flagVersionText != 0 {
		r.version = object.Version(d.text())
	} else {
		r.version = object.Version(strconv.FormatUint(d.uvarint(), 10))
	}
	if !deletion {
		size := d.uvarint()
		if size > 1<<40 {
			return record{}, errBadRecord
		}
		r.size = int(size)
		r.data = string(d.rest)
		d.rest = nil
	}
	if d.bad || len(d.rest) != 0 {
		return record{}, errBadRecord
	}
	return r, nil
}

// recordTime returns the time and flags of a newest or carried state, without decoding the rest.
func recordTime(b []byte) (at int64, flags byte, err error) {
	if len(b) < 9 || b[0]&flagTime == 0 {
		return 0, 0, errBadRecord
	}
	return int64(binary.BigEndian.Uint64(b[1:])), b[0], nil
}

// A decoder reads fields. After the first one that is not there, bad is true and all others are zero.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) take(n int) []byte {
	if n < 0 || n > len(d.rest) {
		d.bad, d.rest = true, nil
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) uint64() uint64 {
	if b := d.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (d *decoder) uvarint() uint64 {
	u, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.bad, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[n:]
	return u
}

func (d *decoder) text() string {
	n := d.uvarint()
	if n > uint64(len(d.rest)) {
		d.bad, d.rest = true, nil
		return ""
	}
	return string(d.take(int(n)))
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// parseVersion returns the number that a version is the only text of.
func parseVersion(s string) (uint64, bool) {
	if s == "" || s[0] == '0' && len(s) > 1 || s[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}

// parseUUID decodes the usual text of a UUID, in lower case, so that formatUUID gives the same text.
func parseUUID(dst *[16]byte, s string) bool {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return false
	}
	at := 0
	for i := 0; i < len(s); i++ {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			continue
		}
		var v byte
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			v = c - '0'
		case c >= 'a' && c <= 'f':
			v = c - 'a' + 10
		default:
			return false
		}
		dst[at/2] |= v << (4 * uint(1-at%2))
		at++
	}
	return true
}

func formatUUID(b []byte) string {
	if len(b) != 16 {
		return ""
	}
	var s [36]byte
	hex.Encode(s[:8], b[:4])
	hex.Encode(s[9:13], b[4:6])
	hex.Encode(s[14:18], b[6:8])
	hex.Encode(s[19:23], b[8:10])
	hex.Encode(s[24:], b[10:])
	s[8], s[13], s[18], s[23] = '-', '-', '-', '-'
	return string(s[:])
}
