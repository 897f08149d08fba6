package fleet

import (
	"compress/flate"
	"math/rand/v2"
	"sync"
)

const (
	// sampleAfter is the size up to which a list counts as incompressible.
	sampleAfter = 1 << 20
	// sampleInterval is about how many bytes of a list are between two samples.
	sampleInterval = 1 << 20
	// sampleSize is the size of a sample, about the window of the packer.
	sampleSize = 32 << 10
	// leastShare is the lower bound of the estimated compression.
	leastShare = 1.0 / 64
)

// sizeEstimate estimates the packed size of a list while it is read, because the store knows it
// only at the end. It compresses parts of some objects. They are chosen at random, so that a
// server cannot send incompressible objects between the samples.
type sizeEstimate struct {
	raw   int64   // bytes of all objects
	sum   float64 // the estimate up to the last sample
	since int64   // bytes since the last sample
	next  int64   // the value of since at which the next sample is taken
	last  []byte  // the last sample
}

// add counts one object: its size, and its bytes if they are known.
func (s *sizeEstimate) add(size int, encoded []byte) {
	s.raw += int64(size)
	s.since += int64(size)
	if s.since < s.next {
		return
	}
	share := 1.0
	if encoded != nil && s.raw > sampleAfter {
		share = compressedShare(encoded, s.last)
	}
	s.sum += share * float64(s.since)
	s.since = 0
	if s.raw > sampleAfter {
		s.next = rand.N(int64(2 * sampleInterval))
		s.last = append(s.last[:0], window(encoded, 0)...)
	}
}

// estimate returns the estimated packed size of all objects.
func (s *sizeEstimate) estimate() int64 { return int64(s.sum) + s.since }

// compressionSampler compresses samples. The lists of all clusters share a few, because each takes a megabyte.
type compressionSampler struct {
	out counter
	w   *flate.Writer
}

var compressionSamplers = sync.Pool{New: func() any {
	s := new(compressionSampler)
	s.w, _ = flate.NewWriter(&s.out, flate.BestSpeed) // fails only for an unknown level
	return s
}}

type counter int

// Write counts.
func (c *counter) Write(b []byte) (int, error) { *c += counter(len(b)); return len(b), nil }

// window returns a part of an object, not larger than a sample.
func window(b []byte, from int) []byte {
	b = b[min(from, len(b)):]
	return b[:min(len(b), sampleSize)]
}

// compressedShare returns the compressed share of an object, compressed after a similar one.
func compressedShare(object, like []byte) float64 {
	if len(object) == 0 {
		return 1
	}
	from := 0
	if len(object) > sampleSize {
		from = rand.N(len(object) - sampleSize + 1)
	}
	part := window(object, from)
	s := compressionSamplers.Get().(*compressionSampler)
	defer compressionSamplers.Put(s)
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

// write compresses b. Writing to a counter cannot fail.
func (s *compressionSampler) write(b []byte) {
	if _, err := s.w.Write(b); err == nil {
		_ = s.w.Flush()
	}
}
