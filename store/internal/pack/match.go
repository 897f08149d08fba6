package pack

import (
	"encoding/binary"
	"math/bits"
)

// word is the number of bytes by which matches are searched. The last bytes of an object are only reached by matches
// that begin before them.
const word = 8

func load64(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }

// matchLen counts the bytes that a and b have in common at their beginning.
func matchLen(a, b []byte) int {
	n := min(len(a), len(b))
	a, b = a[:n], b[:n]
	i := 0
	for ; i+word <= n; i += word {
		if x := load64(a, i) ^ load64(b, i); x != 0 {
			return i + bits.TrailingZeros64(x)>>3
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// matchText is matchLen of bytes and a string.
func matchText(a []byte, b string) int {
	n := min(len(a), len(b))
	i := 0
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// positions remembers the position of words, the last one for each hash.
type positions struct {
	slots []uint32 // position + 1, 0 for none; len is a power of two
	shift uint8
	drop  uint8 // bits of a word that are ignored: 64 - 8 * significant bytes
}

// reset empties the table and makes room for n positions.
func (p *positions) reset(n, significant int) {
	size := 1 << max(8, min(maxTableBits, bits.Len(uint(n))))
	if cap(p.slots) < size {
		p.slots = make([]uint32, size)
	} else {
		p.slots = p.slots[:size]
		clear(p.slots)
	}
	p.shift = uint8(64 - bits.TrailingZeros(uint(size)))
	p.drop = uint8(64 - 8*significant)
}

func (p *positions) slot(u uint64) uint64 {
	return (u << (p.drop & 63) * hashFactor) >> (p.shift & 63) & uint64(len(p.slots)-1)
}

func (p *positions) put(u uint64, at int) { p.slots[p.slot(u)] = uint32(at) + 1 }

// get returns a position at which the word may be, or -1.
func (p *positions) get(u uint64) int { return int(p.slots[p.slot(u)]) - 1 }

const (
	hashFactor   = 0x9e3779b97f4a7c15
	maxTableBits = 16 // 256 KiB for a table, only for objects that are that large
)
