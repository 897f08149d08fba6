package main

import (
	"fmt"
	"slices"
)

// flatness says whether a series grew. Of its second half, when everything that fills
// up once is full, a line is fitted by Theil's and Sen's way: its slope is the median of
// the slopes between every two points. A few points far off, such as those that catch
// a handler in the middle of a replay, do not move it; a leak moves it however small
// the steps are. The growth is what the line rises over that half.
//
// A series is flat if that is at most its bound. The bounds are far below what a leak
// would make, and above what the load itself makes. In half an hour some 700 handlers
// join, so a goroutine, a file or a pod that one of them leaves behind would be 350 in
// that half. The heap may grow by 3%: a pod gets an entry of managedFields when its
// labels are first changed, which at 200 changes a second still happens to pods in
// the second half, and adds 1%; keeping a tenth of the versions that pass would add 30%.
type flatness struct {
	Series string  `json:"series"`
	Middle float64 `json:"median"` // of the second half
	Growth float64 `json:"growth"` // over the second half
	Bound  float64 `json:"bound"`
	Points int     `json:"points"`
	from   float64 // the fitted line, for the plot
	slope  float64
	start  float64
}

// fewest is how many points the second half must have for a verdict.
const fewest = 20

const (
	heapBound      = 0.03 // of the median
	goroutineBound = 5
	fileBound      = 1
)

// flat reports whether the series was flat; without enough points it says so.
func (f flatness) flat() (bool, error) {
	if f.Points < fewest {
		return false, fmt.Errorf("%s: %d samples in the second half; %d are needed for a verdict, so let it run longer",
			f.Series, f.Points, fewest)
	}
	return f.Growth <= f.Bound, nil
}

func (f flatness) String() string {
	return fmt.Sprintf("%s: median %.6g, grew by %.4g over the second half; at most %.4g", f.Series,
		f.Middle, f.Growth, f.Bound)
}

// fit judges one series.
func fit(name string, samples []sample, value func(sample) float64, bound func(middle float64) float64) flatness {
	half := samples[len(samples)/2:]
	f := flatness{Series: name, Points: len(half)}
	if len(half) < 2 {
		return f
	}
	var slopes, values []float64
	for i, a := range half {
		values = append(values, value(a))
		for _, b := range half[i+1:] {
			slopes = append(slopes, (value(b)-value(a))/(b.Seconds-a.Seconds))
		}
	}
	f.slope, f.Middle = median(slopes), median(values)
	first, last := half[0].Seconds, half[len(half)-1].Seconds
	f.Growth, f.Bound = f.slope*(last-first), bound(f.Middle)
	f.start, f.from = first, f.Middle-f.Growth/2
	return f
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// verdicts judges the three series that must be flat.
func verdicts(samples []sample) []flatness {
	constant := func(b float64) func(float64) float64 { return func(float64) float64 { return b } }
	return []flatness{
		fit("live heap, MiB", samples, func(s sample) float64 { return float64(s.Heap) / (1 << 20) },
			func(m float64) float64 { return heapBound * m }),
		fit("goroutines", samples, func(s sample) float64 { return float64(s.Goroutines) }, constant(goroutineBound)),
		fit("open files", samples, func(s sample) float64 { return float64(s.Files) }, constant(fileBound)),
	}
}
