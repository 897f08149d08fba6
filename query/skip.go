package query

import (
	"encoding/binary"
	"math/bits"
)

// The functions of this file walk over bytes. Those from skipString on are for bytes that were found valid, and
// check nothing again.

func spaceEnd(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// plainEnd returns where the run of bytes ends that mean themselves inside a string: at a quote, a
// backslash or a control character. It looks at eight bytes at a time, because most of an object is
// strings.
func plainEnd(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		if m := special(binary.LittleEndian.Uint64(b[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= 0x20 {
		i++
	}
	return i
}

// special sets the high bit of the first byte that ends a run. Bits above that one may be set
// without reason, by a borrow.
func special(w uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote, slash := w^(ones*'"'), w^(ones*'\\')
	return ((w-ones*0x20)&^w | (quote-ones)&^quote | (slash-ones)&^slash) & highs
}

// skipString returns the end of the string that begins at i.
func skipString(b []byte, i int) int {
	end, _ := skipName(b, i)
	return end
}

// skipName is skipString that also says whether there are escapes.
func skipName(b []byte, i int) (end int, escaped bool) {
	for i++; ; i += 2 {
		i = plainEnd(b, i)
		if b[i] == '"' {
			return i + 1, escaped
		}
		escaped = true
	}
}

// skipValue returns the end of the value that begins at i.
func skipValue(b []byte, i int) int {
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		return skipNest(b, i)
	}
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
		i++
	}
	return i
}

func skipNest(b []byte, i int) int {
	for depth := 0; ; {
		switch b[i] {
		case '"':
			i = skipString(b, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
}

// valueAfter returns where the value begins that follows a key which ends at i.
func valueAfter(b []byte, i int) int {
	return spaceEnd(b, spaceEnd(b, i)+1) // the colon
}

// nextAfter returns where what follows a value that ends at i begins: the next member or element, or the
// bracket at the end.
func nextAfter(b []byte, i int) int {
	if i = spaceEnd(b, i); b[i] == ',' {
		i = spaceEnd(b, i+1)
	}
	return i
}

// nextMember reads the member of an object at i, which is behind the brace, or where nextMember ended.
// ok is false at the end of the object.
func nextMember(b []byte, i int) (name []byte, escaped bool, value []byte, next int, ok bool) {
	i = spaceEnd(b, i)
	if b[i] == '}' {
		return nil, false, nil, i, false
	}
	colon, escaped := skipName(b, i)
	from := valueAfter(b, colon)
	end := skipValue(b, from)
	return b[i+1 : colon-1], escaped, b[from:end], nextAfter(b, end), true
}

// nextElement reads the element of an array at i, as nextMember does.
func nextElement(b []byte, i int) (value []byte, next int, ok bool) {
	i = spaceEnd(b, i)
	if b[i] == ']' {
		return nil, i, false
	}
	end := skipValue(b, i)
	return b[i:end], nextAfter(b, end), true
}
