package share

import "testing"

// A bucket holds four parts.
func TestPartsInOneBucketAreAllRemembered(t *testing.T) {
	var s sightings
	s.fit(1)
	parts := make([]uint64, len(bucket{}))
	for i := range parts {
		parts[i] = uint64(7+i*len(s.buckets)) << 32
	}
	for round, want := range []bool{false, true, false, true} {
		for i, hash := range parts {
			if got := s.seenBefore(hash); got != want {
				t.Errorf("round %d, part %d: seen before is %v", round, i, got)
			}
		}
	}
	if s.filled != 0 {
		t.Errorf("%d parts are counted, none is remembered", s.filled)
	}
}

// Growth keeps the newest parts, and the count of filled cells stays right.
func TestSightingsOutliveGrowth(t *testing.T) {
	var s sightings
	s.fit(1)
	const n = minSightings * 4
	for i := range uint64(n) {
		s.seenBefore((i*2654435761 ^ i<<13) << 32)
	}
	last := uint64(n-1)*2654435761 ^ uint64(n-1)<<13
	before := len(s.buckets)
	for objects := n; len(s.buckets) == before; objects *= 2 {
		if objects > 1<<40 {
			t.Fatal("the buckets do not grow")
		}
		s.fit(objects)
	}
	filled := 0
	for _, b := range s.buckets {
		for _, print := range b {
			if print != 0 {
				filled++
			}
		}
	}
	if filled != s.filled || filled == 0 {
		t.Errorf("%d are counted, %d are there", s.filled, filled)
	}
	if !s.seenBefore(last << 32) {
		t.Error("the newest was forgotten when it grew")
	}
}
