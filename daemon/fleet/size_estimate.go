package fleet

import (
	"compress/flate"
	"math/rand/v2"
	"sync"
)

const (
	// pessimism is up to where a list counts as if nothing could be packed.
	pessimism = 1 << 20
	// stride is about how many bytes of a list there are between two samples.
	stride = 1 << 20
	// sampleSize is how much of an object is looked at: about what the packer looks back.
	sampleSize = 32 << 10
	// leastShare is the least that is believed to be left of an object.
	leastShare = 1.0 / 64
)

// scale estimates what a list will take when it is packed, while it arrives: the store
// knows only at the end. It packs a part of some objects, chosen at random so that
// nobody can send others than those that are looked at.
type scale struct {
	by    *sampler
	raw   int64   // of all
	sum   float64 // of what was weighed
	since int64   // what came after that
	next  int64   // when since is enough for the next sample
	last  []byte  // the sample before
}

// add takes one object: its size, and its bytes if they are known.
func (s *scale) add(size int, encoded []byte) {
	s.raw += int64(size)
	s.since += int64(size)
	if s.since < s.next {
		return
	}
	share := 1.0
	if encoded != nil && s.raw > pessimism {
		share = s.by.share(encoded, s.last)
	}
	s.sum += share * float64(s.since)
	s.since = 0
	if s.raw > pessimism {
		s.next = rand.N(int64(2 * stride))
		s.last = append(s.last[:0], window(encoded, 0)...)
	}
}

// estimate is what all of it takes.
func (s *scale) estimate() int64 { return int64(s.sum) + s.since }

// sampler packs samples. A cluster's lists share one: it is large.
type sampler struct {
	mu  sync.Mutex
	out counter
	w   *flate.Writer
}

type counter int

// Write counts.
func (c *counter) Write(b []byte) (int, error) { *c += counter(len(b)); return len(b), nil }

// window is a part of an object, no larger than a sample.
func window(b []byte, from int) []byte {
	b = b[min(from, len(b)):]
	return b[:min(len(b), sampleSize)]
}

// share is which part is left of an object when it is packed behind one like it.
func (s *sampler) share(object, like []byte) float64 {
	if len(object) == 0 {
		return 1
	}
	from := 0
	if len(object) > sampleSize {
		from = rand.N(len(object) - sampleSize + 1)
	}
	part := window(object, from)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.w == nil {
		s.w, _ = flate.NewWriter(&s.out, flate.BestSpeed) // which knows its own levels
	}
	s.out = 0
	s.w.Reset(&s.out)
	before := counter(0)
	if len(like) > 0 {
		s.write(like)
		before = s.out
	}
	s.write(part)
	return min(1, max(leastShare, float64(s.out-before)/float64(len(part))))
}

// write packs, as far as it goes: a counter takes everything.
func (s *sampler) write(b []byte) {
	if _, err := s.w.Write(b); err == nil {
		_ = s.w.Flush()
	}
}
