package pack

import "encoding/binary"

// Format is the version of the format of packed data. Data that was kept on disk in another one cannot be read.
const Format = 1

// The format of packed data. A change of it needs another Format.
//
//	plain data    flags = flagPlain, check, the original bytes
//	coded data    flags, check, length, split, ops, literals
//
//	flags         1 byte, the flag constants below
//	check         checkSize bytes of a hash of the original
//	length        zigzag varint: length of the original minus length of the base
//	split         uvarint: bytes of the ops as stored; the literals are the rest
//
// Without a base the length of the base is 0 and base copies do not occur.
//
// Ops build the original from left to right. A cursor into the base moves with the output, whatever produces the
// output, so that after a substitution of equal length copying continues at the right position without another op.
// When the ops end, the rest of the length is copied from the base at the cursor. An op is one byte, sometimes
// followed by more:
//
//	0x00-0x5f  copy 1-96 bytes from the base at the cursor
//	0x60-0x7e  copy 97 + (low 5 bits << 8 | next byte) bytes, likewise
//	0x7f       copy uvarint bytes, likewise
//	0x80-0xff  1kkk nnnn, an edit of kind k and size n+1; n = 15 means 16 + uvarint
//
// Kinds of edit; size counts bytes of output, except for seek:
//
//	lit   size literal bytes
//	hex   digits 0-9a-f, two to a literal byte, the high half first
//	num   likewise for the alphabet of times, addresses and numbers (numDigits)
//	ctx   copy from the context; uvarint offset follows
//	out   copy from the output, may overlap itself; uvarint distance-1 follows
//	far   copy from the base; uvarint offset follows; the cursor moves by size as always
//	seek  no output; the cursor moves by the zigzag number size
//	more  depending on size:
//	      1  repeat the output of the n-th edit lit, hex, num or ctx of minRepeated bytes or more; n is one byte.
//	         A name or address that occurs five times costs its bytes once, and unlike a distance n is
//	         the same in all siblings.
//	      2  a time in protobuf: a varint of timeWidth bytes
//	      3  a time in text: timeText, UTC
//	      A time is the seconds of the time before it (at first: what the base has at the cursor,
//	      or 0) plus a zigzag varint among the literals.
//
// flagShaped: the ops are stored as their difference to the shape of the base, the ops of an earlier sibling, because
// siblings differ from their base at the same positions. Each step is one byte, nnnn ddii: copy n bytes of the shape,
// skip d bytes of it, append the i bytes that follow. When the steps end, the rest of the shape is copied.
//
// flagOpsHuffed, flagLiteralsHuffed: that part is coded in chunks of at most huffChunk bytes:
// uvarint length, uvarint coded length (0: the chunk is plain), the chunk.
const (
	flagPlain          = 1 << 0
	flagShaped         = 1 << 1
	flagOpsHuffed      = 1 << 2
	flagLiteralsHuffed = 1 << 3

	checkSize  = 3
	headerSize = 1 + checkSize

	editLit  = 0
	editHex  = 1
	editNum  = 2
	editCtx  = 3
	editOut  = 4
	editFar  = 5
	editSeek = 6
	editMore = 7

	moreRepeat = 1
	moreVarint = 2
	moreText   = 3

	minRepeated = 3
	maxRepeated = 64 // number of edits that can be repeated
	timeWidth   = 5  // seconds from 1978 to 3058
	timeText    = "2006-01-02T15:04:05Z"

	copyShort = 96   // longest copy in one byte
	copyTwo   = 0x60 // first byte of a copy in two bytes
	copyLong  = 0x7f
	editFlag  = 0x80
	editLong  = 15 // size field after which a uvarint follows

	hexDigits = "0123456789abcdef"
	numDigits = "0123456789.:-TZ,"
)

// Values of digits in the two alphabets; 0xff for any other byte.
var hexValue, numValue = digitValues(hexDigits), digitValues(numDigits)

func digitValues(digits string) (v [256]byte) {
	for i := range v {
		v[i] = 0xff
	}
	for i := range len(digits) {
		v[digits[i]] = byte(i)
	}
	return v
}

func zigzag(n int) uint64 { return uint64(n<<1) ^ uint64(n>>63) }

func unzigzag(u uint64) int { return int(u>>1) ^ -int(u&1) }

func appendCopy(ops []byte, n int) []byte {
	switch {
	case n <= copyShort:
		return append(ops, byte(n-1))
	case n-copyShort-1 < (copyLong-copyTwo)<<8:
		v := n - copyShort - 1
		return append(ops, byte(copyTwo|v>>8), byte(v))
	}
	return binary.AppendUvarint(append(ops, copyLong), uint64(n))
}

func appendEdit(ops []byte, kind byte, size int) []byte {
	tag := editFlag | kind<<4
	if size <= editLong {
		return append(ops, tag|byte(size-1))
	}
	return binary.AppendUvarint(append(ops, tag|editLong), uint64(size-editLong-1))
}

func appendAddressed(ops []byte, kind byte, size, address int) []byte {
	return binary.AppendUvarint(appendEdit(ops, kind, size), uint64(address))
}
