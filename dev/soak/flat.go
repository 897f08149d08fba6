package main

import (
	"fmt"
	"slices"
)

// flatness is the growth of a series. A line is fitted to its second half, when everything that fills up once is full,
// by the Theil–Sen estimator: its slope is the median of the slopes between every two points. A few outliers, such as
// samples during a handler's replay, do not change it; a leak does, however small the steps are. The growth is the
// rise of the line over that half.
//
// A series is flat if its growth is at most its bound. The bounds are far below what a leak causes, and above what the
// load itself causes. Hundreds of handlers join in half an hour, so a goroutine, a file or a pod that each of them
// leaks exceeds the bounds. The heap may grow by 3%: a pod gets an entry in managedFields when its labels are first
// changed, which still happens to some pods in the second half; keeping a tenth of the passing versions would exceed
// that many times.
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
	heapBound      = 0.03 // share of the median
	goroutineBound = 5
	fileBound      = 1
)

// flat reports whether the series was flat; with too few points it returns an error.
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

// fit fits a line to one series.
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

// verdicts returns the flatness of the three series that must be flat.
func verdicts(samples []sample) []flatness {
	constant := func(b float64) func(float64) float64 { return func(float64) float64 { return b } }
	return []flatness{
		fit("live heap, MiB", samples, func(s sample) float64 { return float64(s.Heap) / (1 << 20) },
			func(m float64) float64 { return heapBound * m }),
		fit("goroutines", samples, func(s sample) float64 { return float64(s.Goroutines) }, constant(goroutineBound)),
		fit("open files", samples, func(s sample) float64 { return float64(s.Files) }, constant(fileBound)),
	}
}
