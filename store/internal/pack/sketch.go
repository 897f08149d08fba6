package pack

import (
	"math"
	"math/bits"
)

const (
	features    = 64
	sketched    = 1 << 16 // bytes after that do not count
	minSketched = 256     // a shorter object has too few features and little to save
)

// A sketch describes an object without knowing its format: of sampled words, those with the smallest hashes. Words are
// sampled by their content, so an insertion does not affect other words. The hash of a word selects one of the
// features, so one pass over the words is enough.
type sketch [features]uint64

const noFeature = math.MaxUint64

// fill samples the words that begin with a byte whose low half is 7: g, w, 7 and a sixteenth of all binary bytes,
// because rarer letters find siblings better. It examines eight bytes in one step.
func (s *sketch) fill(b []byte) {
	const each, low, high = 0x0707070707070707, 0x0f0f0f0f0f0f0f0f, 0x8080808080808080
	for i := range s {
		s[i] = noFeature
	}
	b = b[:min(len(b), sketched)]
	for i := 0; i+2*word <= len(b); i += word {
		two := b[i : i+2*word]
		// A byte of x is 0 where the low half is 7; adding 0x7f sets the high bit of all others.
		x := (load64(two, 0) ^ each) & low
		for m := ^(x + ^uint64(high)) & high; m != 0; m &= m - 1 {
			h := load64(two, bits.TrailingZeros64(m)>>3) * hashFactor
			h = (h ^ h>>29) * hashFactor
			if f := &s[h>>58]; h < *f {
				*f = h
			}
		}
	}
}

// feature returns feature number i for the index, or false if the object is too small to have it.
func (s *sketch) feature(i int) (uint32, bool) {
	return uint32(s[i] >> 27), s[i] != noFeature
}
