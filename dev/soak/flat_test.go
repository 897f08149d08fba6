package main

import (
	"math/rand/v2"
	"testing"
)

// series returns samples of a run whose heap is noisy around 500 MiB, with an outlier now and then, and which leaks
// this many bytes, and handlers, per sample.
func series(n int, leak float64) []sample {
	random := rand.New(rand.NewPCG(1, 2))
	var out []sample
	for i := range n {
		s := sample{Seconds: float64(10 * (i + 1)), Files: 12, Goroutines: 40 + random.IntN(9)}
		heap := 500<<20 + random.NormFloat64()*(4<<20) + leak*float64(i)
		if i%9 == 4 {
			heap += 120 << 20 // a sample during a handler's replay
		}
		if i < n/3 {
			heap -= float64(n/3-i) * (5 << 20) // it fills up once
		}
		s.Heap = uint64(max(0, heap))
		if leak > 0 {
			s.Goroutines += i / 4
			s.Files += i / 50
		}
		out = append(out, s)
	}
	return out
}

func TestNoiseIsFlatAndALeakIsNot(t *testing.T) {
	for _, f := range verdicts(series(180, 0)) {
		if ok, err := f.flat(); err != nil || !ok {
			t.Errorf("without a leak: %v, %v", f, err)
		}
	}
	for _, f := range verdicts(series(180, 256<<10)) { // 25 KiB per second
		if ok, err := f.flat(); err != nil || ok {
			t.Errorf("with a leak: %v, %v", f, err)
		}
	}
}

func TestAShortSeriesHasNoVerdict(t *testing.T) {
	for n := range 2 * fewest {
		for _, f := range verdicts(series(n, 0)) {
			if _, err := f.flat(); err == nil && f.Points < fewest {
				t.Fatalf("%d samples gave a verdict: %v", n, f)
			}
		}
	}
}

func TestTheSlopeIsTheMedianOfAllSlopes(t *testing.T) {
	var s []sample
	for i := range 40 {
		s = append(s, sample{Seconds: float64(i), Goroutines: 3 * i})
	}
	s[25].Goroutines = 100_000
	f := verdicts(s)[1]
	if f.slope != 3 || f.Growth != 57 || f.Points != 20 {
		t.Errorf("%+v", f)
	}
}
