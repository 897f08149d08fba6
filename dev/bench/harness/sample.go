package harness

import (
	"cmp"
	"math"
	"slices"
)

// Sample is one figure of one variant over all repetitions.
type Sample struct {
	Median, Min, Max float64
	Runs             int
	// Stolen is the highest share of CPU time that the host took from a trial.
	Stolen float64
}

func sampleOf(values []float64) (Sample, bool) {
	if len(values) == 0 {
		return Sample{}, false
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	median := sorted[n/2]
	if n%2 == 0 {
		median = (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return Sample{Median: median, Min: sorted[0], Max: sorted[n-1], Runs: n}, true
}

// Medians returns the median of each figure over several measurements of one trial.
func Medians(runs []Figures) Figures {
	all := map[string][]float64{}
	for _, f := range runs {
		for name, value := range f {
			all[name] = append(all[name], value)
		}
	}
	medians := Figures{}
	for name, values := range all {
		s, _ := sampleOf(values)
		medians[name] = s.Median
	}
	return medians
}

// Spread is half the distance from the smallest to the largest value, as a share of the median.
func (s Sample) Spread() float64 {
	if s.Median == 0 {
		return 0
	}
	return (s.Max - s.Min) / 2 / math.Abs(s.Median)
}

// measured is one trial: its round, its figures, and the share of the requested CPU time that the host took.
type measured struct {
	round   int
	figures Figures
	stolen  float64
}

// sides are the trials of a case, by variant.
type sides map[string][]measured

// sample returns one figure of one variant.
func (s sides) sample(variant, figure string) (Sample, bool) {
	var all []point
	for _, m := range s[variant] {
		if value, known := m.figures[figure]; known {
			all = append(all, point{ours: value, stolen: m.stolen})
		}
	}
	return sampleOfPoints(calmest(all), func(p point) float64 { return p.ours })
}

// leftAlone returns the same trials without stolen time, for figures that do not depend on it.
func (s sides) leftAlone() sides {
	alone := sides{}
	for v, all := range s {
		alone[v] = slices.Clone(all)
		for i := range alone[v] {
			alone[v][i].stolen = 0
		}
	}
	return alone
}

// point is one round of a row.
type point struct{ ours, peer, stolen float64 }

// calmest returns the points that count: CPU time that the host took says nothing about the code that waited for it.
// Disturbed points count only if there are no others, and strongly disturbed ones only if there is nothing else.
func calmest(all []point) []point {
	for _, most := range []float64{calmShare, tooMuch} {
		if calm := slices.DeleteFunc(slices.Clone(all), func(p point) bool { return p.stolen > most }); len(calm) > 0 {
			return calm
		}
	}
	return all
}

func sampleOfPoints(all []point, figure func(point) float64) (Sample, bool) {
	var values []float64
	var stolen float64
	for _, p := range all {
		values, stolen = append(values, figure(p)), max(stolen, p.stolen)
	}
	sample, ok := sampleOf(values)
	sample.Stolen = stolen
	return sample, ok
}

// pairs returns the points that count of rounds in which both sides have a trial. Both ran within a minute, so a slow
// phase of the machine affects both. Medians of each side over all of its trials would compare a fast phase of one
// with a slow phase of the other.
func (s sides) pairs(ours, figure, peer, peerFigure string) (all []point) {
	theirs := map[int]measured{}
	for _, m := range s[peer] {
		theirs[m.round] = m
	}
	for _, m := range s[ours] {
		of := theirs[m.round]
		if value, known := m.figures[figure]; known && of.figures[peerFigure] != 0 {
			all = append(all, point{value, of.figures[peerFigure], max(m.stolen, of.stolen)})
		}
	}
	return calmest(all)
}

// Result is a row with its figures, as stored in results.json.
type Result struct {
	Case   string `json:"case"`
	Layout string `json:"layout,omitempty"`
	Unit   string `json:"unit"`
	// Objects is the size, for a point of a growth curve.
	Objects int      `json:"objects,omitempty"`
	Ours    float64  `json:"ours"`
	Peer    *float64 `json:"peer"`
	Ratio   *float64 `json:"ratio"`
	Goal    *float64 `json:"goal"`
	GoalOf  GoalOf   `json:"goalOf,omitempty"`
	Met     *bool    `json:"met"`
	Spread  Spread   `json:"spread"`
	// Runs is how many rounds count; with a peer, the rounds of both.
	Runs int `json:"runs"`
	// Stolen is the highest share of CPU time that the host took from a trial that counts; none if the figure does not
	// depend on it.
	Stolen float64 `json:"stolen"`
}

// Spread is how much the repetitions of each side vary.
type Spread struct {
	// Ours and Peer are half the distance from the smallest to the largest, as a share
	// of the median.
	Ours float64 `json:"ours"`
	Peer float64 `json:"peer"`
	// Ratio is the same for the ratios of the rounds; nil if there is at most one round.
	Ratio *float64 `json:"ratio,omitempty"`
	// RatioRange is the smallest and the largest ratio.
	RatioRange *[2]float64 `json:"ratioRange,omitempty"`
	// OursRange and PeerRange are the smallest and the largest figures.
	OursRange [2]float64  `json:"oursRange"`
	PeerRange *[2]float64 `json:"peerRange,omitempty"`
}

// noise returns the uncertainty of the value that is compared with a goal or a record.
func (s *Spread) noise() float64 {
	if s.Ratio != nil {
		return *s.Ratio
	}
	return s.Ours + s.Peer
}

// Rows returns the rows of the measurements. A row without figures is omitted.
func Rows(cases []Case, t Trials) []Result {
	var all []Result
	for _, c := range cases {
		for _, r := range c.Rows {
			if res, ok := r.result(t[c.Name]); ok {
				all = append(all, res)
			}
		}
	}
	return all
}

func (r *Row) result(by sides) (Result, bool) {
	if r.sheltered() {
		by = by.leftAlone()
	}
	ours, ok := r.sample(by, r.Ours, r.Figure)
	if !ok {
		return Result{}, false
	}
	res := Result{Case: r.Name, Layout: r.Layout, Unit: r.Unit, Objects: r.N, GoalOf: r.Goal.Of}
	res.ofOurs(ours)
	if r.Growth != nil {
		res.Unit = Exponent
	}
	if r.Goal.Of != NoGoal {
		res.Goal = &r.Goal.Value
	}
	ratio := math.NaN()
	peerFigure := cmp.Or(r.PeerFigure, r.Figure)
	if r.Growth != nil {
		if peer, ok := r.sample(by, r.Peer, peerFigure); ok {
			res.ofPeer(peer)
		}
	} else if pairs := by.pairs(r.Ours, r.Figure, r.Peer, peerFigure); len(pairs) > 0 {
		ours, _ = sampleOfPoints(pairs, func(p point) float64 { return p.ours })
		res.ofOurs(ours)
		peer, _ := sampleOfPoints(pairs, func(p point) float64 { return p.peer })
		res.ofPeer(peer)
		rounds, _ := sampleOfPoints(pairs, func(p point) float64 { return p.ours / p.peer })
		if spread := rounds.Spread(); rounds.Runs > 1 {
			res.Spread.Ratio, res.Spread.RatioRange = &spread, &[2]float64{rounds.Min, rounds.Max}
		}
		ratio = rounds.Median
		res.Ratio = &ratio
	}
	if res.Ratio != nil || r.Goal.ofOurs() {
		res.Met = r.Goal.met(ours.Median, ratio)
	}
	return res, true
}

func (r *Result) ofOurs(s Sample) {
	r.Ours, r.Runs, r.Stolen = s.Median, s.Runs, s.Stolen
	r.Spread.Ours, r.Spread.OursRange = s.Spread(), [2]float64{s.Min, s.Max}
}

func (r *Result) ofPeer(s Sample) {
	r.Peer, r.Stolen = &s.Median, max(r.Stolen, s.Stolen)
	r.Spread.Peer, r.Spread.PeerRange = s.Spread(), &[2]float64{s.Min, s.Max}
}

func (r *Row) sample(by sides, side, figure string) (Sample, bool) {
	if side == "" {
		return Sample{}, false
	}
	if r.Growth == nil {
		return by.sample(side, figure)
	}
	return r.exponent(by, side, figure)
}

// exponent fits cost = a * n^e through the medians of the sizes; 1 is linear.
func (r *Row) exponent(by sides, side, figure string) (Sample, bool) {
	var xs, ys []float64
	var runs int
	var stolen float64
	for _, n := range r.Growth {
		s, ok := by.sample(At(side, n), figure)
		if !ok || s.Median <= 0 {
			continue
		}
		xs, ys = append(xs, math.Log(float64(n))), append(ys, math.Log(s.Median))
		runs, stolen = s.Runs, max(stolen, s.Stolen)
	}
	if len(xs) < 2 {
		return Sample{}, false
	}
	var sx, sy, sxx, sxy float64
	for i := range xs {
		sx, sy, sxx, sxy = sx+xs[i], sy+ys[i], sxx+xs[i]*xs[i], sxy+xs[i]*ys[i]
	}
	n := float64(len(xs))
	e := (n*sxy - sx*sy) / (n*sxx - sx*sx)
	return Sample{Median: e, Min: e, Max: e, Runs: runs, Stolen: stolen}, true
}
