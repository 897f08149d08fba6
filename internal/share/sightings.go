package share

// sightings remembers parts that were seen once, by a fingerprint, and forgets old ones. A part enters the table when
// it is seen for the second time, because an entry for a part that only one object has would be useless. A false
// positive costs an entry that one object uses.
//
// Fingerprints are in buckets, newest first. With one cell for each, two parts of the same template with the same cell
// would evict each other for ever, and neither would be shared.
type sightings struct {
	buckets []bucket
	filled  int
}

type bucket [4]uint32

const (
	minSightings = 1 << 8 // buckets
	maxSightings = 1 << 18
)

// seenBefore reports whether a part was seen before, and remembers it.
func (s *sightings) seenBefore(hash uint64) bool {
	print := uint32(hash>>32) | 1<<31
	b := s.bucket(print)
	for i, p := range b {
		if p == print {
			copy(b[i:], b[i+1:])
			b[len(b)-1] = 0
			s.filled--
			return true
		}
	}
	s.remember(b, print)
	return false
}

func (s *sightings) bucket(print uint32) *bucket {
	return &s.buckets[print&uint32(len(s.buckets)-1)]
}

func (s *sightings) remember(b *bucket, print uint32) {
	if b[len(b)-1] == 0 {
		s.filled++
	}
	copy(b[1:], b[:])
	b[0] = print
}

// fit grows the buckets with the number of stored objects, because the distance between two sightings of a part grows
// with it.
func (s *sightings) fit(objects int) {
	if s.buckets == nil {
		s.buckets = make([]bucket, minSightings)
	}
	cells := len(s.buckets) * len(bucket{})
	if len(s.buckets) >= maxSightings || objects*8 <= cells || s.filled*2 < cells {
		return
	}
	old := s.buckets
	s.buckets = make([]bucket, len(old)*2)
	s.filled = 0
	for i := range old {
		for j := len(old[i]) - 1; j >= 0; j-- { // the newest is added last, and so is first again
			if print := old[i][j]; print != 0 {
				s.remember(s.bucket(print), print)
			}
		}
	}
}

func (s *sightings) bytes() int { return len(s.buckets) * len(bucket{}) * 4 }
