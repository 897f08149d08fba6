package share

// sightings remembers parts that were seen once, by a fingerprint, and forgets old ones. A
// part enters the table when it is seen again: one that is unique to its object
// would cost an entry for nothing. A false memory costs an entry that one object uses.
type sightings struct {
	prints []uint32
	filled int
}

const (
	minSightings = 1 << 10
	maxSightings = 1 << 20
)

// again reports whether a part was seen before, and remembers it.
func (s *sightings) again(hash uint64) bool {
	print := uint32(hash>>32) | 1<<31
	cell := &s.prints[print&uint32(len(s.prints)-1)]
	if *cell == print {
		*cell = 0
		s.filled--
		return true
	}
	if *cell == 0 {
		s.filled++
	}
	*cell = print
	return false
}

// fit grows with the number of stored objects. What lies between two sightings of
// a part grows with it too.
func (s *sightings) fit(objects int) {
	if s.prints == nil {
		s.prints = make([]uint32, minSightings)
	}
	want := objects * 8
	if len(s.prints) >= maxSightings || want <= len(s.prints) || s.filled*2 < len(s.prints) {
		return
	}
	old := s.prints
	s.prints = make([]uint32, len(old)*2)
	s.filled = 0
	for _, print := range old {
		if print != 0 {
			s.prints[print&uint32(len(s.prints)-1)] = print
			s.filled++
		}
	}
}

func (s *sightings) bytes() int { return len(s.prints) * 4 }
