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
	// Stolen is how much others took from the trial that they took most from.
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

// Medians gives the median of each figure over several measurements of one trial.
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

// Spread is half the way from the smallest to the largest value, as a share of the median.
func (s Sample) Spread() float64 {
	if s.Median == 0 {
		return 0
	}
	return (s.Max - s.Min) / 2 / math.Abs(s.Median)
}

// measured is one trial: the round it was run in, its figures, and the share of the processor time it asked for that others took.
type measured struct {
	round   int
	figures Figures
	stolen  float64
}

// sides are the trials of a case, by variant.
type sides map[string][]measured

// sample is one figure of one variant. Trials that were disturbed count where there are no others: a processor that was
// taken away says nothing about the code that waited for it.
func (s sides) sample(variant, figure string) (Sample, bool) {
	var values []float64
	var stolen float64
	for _, m := range s.counted(variant, figure) {
		values, stolen = append(values, m.figures[figure]), max(stolen, m.stolen)
	}
	sample, ok := sampleOf(values)
	sample.Stolen = stolen
	return sample, ok
}

// counted are the trials of a variant that count and have a figure.
func (s sides) counted(variant, figure string) (all []measured) {
	calm := slices.ContainsFunc(s[variant], func(m measured) bool { return !disturbed(m.stolen) })
	for _, m := range s[variant] {
		if _, known := m.figures[figure]; known && !(calm && disturbed(m.stolen)) {
			all = append(all, m)
		}
	}
	return all
}

// ratios are those of each round in which both sides have a trial that counts. They ran within a minute: a machine that is half
// as fast for minutes at a time, because of its neighbours, is so for both. Medians of each side over all rounds would
// compare a fast minute of one with a slow one of the other.
func (s sides) ratios(ours, figure, peer, peerFigure string) (Sample, bool) {
	theirs := map[int]float64{}
	for _, m := range s.counted(peer, peerFigure) {
		theirs[m.round] = m.figures[peerFigure]
	}
	var values []float64
	for _, m := range s.counted(ours, figure) {
		if of := theirs[m.round]; of != 0 {
			values = append(values, m.figures[figure]/of)
		}
	}
	return sampleOf(values)
}

// Result is a row with its figures, as results.json has it.
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
	// Runs and PeerRuns are how many trials of each side count.
	Runs     int `json:"runs"`
	PeerRuns int `json:"peerRuns,omitempty"`
	// Stolen is the share of the processors that others took from a trial that counts, where they took most.
	Stolen float64 `json:"stolen"`
}

// Spread is how far the repetitions of each side lay apart.
type Spread struct {
	// Ours and Peer are half the distance from the smallest to the largest, as a share
	// of the median.
	Ours float64 `json:"ours"`
	Peer float64 `json:"peer"`
	// Ratio is the same of the ratios of the rounds; none where there is one round or less.
	Ratio *float64 `json:"ratio,omitempty"`
	// RatioRange has the smallest and the largest of them.
	RatioRange *[2]float64 `json:"ratioRange,omitempty"`
	// OursRange and PeerRange are the smallest and the largest.
	OursRange [2]float64  `json:"oursRange"`
	PeerRange *[2]float64 `json:"peerRange,omitempty"`
}

// noise is how far what is compared with a goal or a record may be off.
func (s *Spread) noise() float64 {
	if s.Ratio != nil {
		return *s.Ratio
	}
	return s.Ours + s.Peer
}

// Rows makes the rows of what was measured. A row whose figures were not is left out.
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
	ours, ok := r.sample(by, r.Ours, r.Figure)
	if !ok {
		return Result{}, false
	}
	res := Result{
		Case: r.Name, Layout: r.Layout, Unit: r.Unit, Objects: r.N, Ours: ours.Median, Runs: ours.Runs, Stolen: ours.Stolen,
		Spread: Spread{Ours: ours.Spread(), OursRange: [2]float64{ours.Min, ours.Max}}, GoalOf: r.Goal.Of,
	}
	if r.Growth != nil {
		res.Unit = Exponent
	}
	if r.Goal.Of != NoGoal {
		res.Goal = &r.Goal.Value
	}
	ratio := math.NaN()
	peerFigure := cmp.Or(r.PeerFigure, r.Figure)
	if peer, ok := r.sample(by, r.Peer, peerFigure); ok {
		res.Peer, res.PeerRuns = &peer.Median, peer.Runs
		res.Stolen = max(res.Stolen, peer.Stolen)
		res.Spread.Peer, res.Spread.PeerRange = peer.Spread(), &[2]float64{peer.Min, peer.Max}
		if peer.Median != 0 && r.Growth == nil {
			ratio = ours.Median / peer.Median
			if rounds, ok := by.ratios(r.Ours, r.Figure, r.Peer, peerFigure); ok {
				ratio = rounds.Median
				if spread := rounds.Spread(); rounds.Runs > 1 {
					res.Spread.Ratio, res.Spread.RatioRange = &spread, &[2]float64{rounds.Min, rounds.Max}
				}
			}
			res.Ratio = &ratio
		}
	}
	if res.Ratio != nil || r.Goal.Of == OursAtMost {
		res.Met = r.Goal.met(ours.Median, ratio)
	}
	return res, true
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
