package harness

import (
	"context"
	"fmt"
	"slices"
)

// Figures are the measurements of one trial, by name.
type Figures map[string]float64

// Params are the parameters of a trial.
type Params struct {
	// Quick asks for small sizes: a smoke run.
	Quick bool `json:"quick"`
	// Scratch is a folder that all trials of a run share, for inputs that the parent
	// prepares once.
	Scratch string `json:"scratch"`
	// Cluster is the kubeconfig of a real server, if the case asked for one.
	Cluster string `json:"cluster,omitempty"`
	// Pods is how many pods the real server should have; 0 leaves it to the case.
	Pods int `json:"pods,omitempty"`
}

// Size returns the size for a full or a quick run.
func (p *Params) Size(full, quick int) int {
	if p.Quick {
		return quick
	}
	return full
}

// Variant is one side of a case.
type Variant struct {
	Name string
	Run  func(ctx context.Context, p *Params) (Figures, error)
	// Floor says that a goal of the case is judged against this variant, though no row with a goal names it: it is
	// measured as often.
	Floor bool
}

// Case is one measurement.
type Case struct {
	// Name is short and used in progress lines and by -only.
	Name string
	// Repeat is the most repetitions of each variant; 0 means 9.
	Repeat   int
	Variants []Variant
	Rows     []Row
	// Prepare runs in the parent before the first trial: it makes inputs in Params.Scratch or starts a server. The
	// function it returns, if not nil, runs at the end.
	Prepare func(ctx context.Context, p *Params) (cleanup func(), err error)
}

// Row is one line of the table.
type Row struct {
	// Name is the name of the case in the table.
	Name   string
	Layout string
	Unit   string
	// Ours and Peer are the variants that are compared; Peer may be empty.
	Ours, Peer string
	// Figure is the figure of Ours, PeerFigure that of Peer if it has another name.
	Figure, PeerFigure string
	Goal               Goal
	// Sheltered says that other load does not change the figure: it is CPU time of a thread or the process. Amounts of
	// memory and counts are sheltered without it.
	Sheltered bool
	// N is the number of objects, for the points of a growth curve.
	N int
	// Growth, if set, makes this row the exponent with which a cost grows over the sizes: Ours and Peer are then prefixes
	// of the variants NAME@SIZE.
	Growth []int
}

// Goal is what a row should reach.
type Goal struct {
	// Of says what is compared with Value.
	Of    GoalOf
	Value float64
}

// GoalOf says what a goal is about.
type GoalOf string

// The kinds of goals.
const (
	NoGoal      GoalOf = ""
	RatioAtMost GoalOf = "ratio at most"
	RatioAbove  GoalOf = "ratio at least"
	OursAtMost  GoalOf = "ours at most"
	// OursBound is a goal without a peer for which a check compares with the goal instead of the record.
	OursBound GoalOf = "ours never above"
)

// Ratio is the goal of being at most v times the peer's figure.
func Ratio(v float64) Goal { return Goal{RatioAtMost, v} }

// Times is the goal of being at least v times the peer's figure.
func Times(v float64) Goal { return Goal{RatioAbove, v} }

// AtMost is a goal without a peer.
func AtMost(v float64) Goal { return Goal{OursAtMost, v} }

// Bound is a goal without a peer that must hold on every machine: a check fails if it is exceeded, whatever was
// recorded.
func Bound(v float64) Goal { return Goal{OursBound, v} }

// ofOurs reports whether the goal is about our figure and not about a ratio.
func (g Goal) ofOurs() bool { return g.Of == OursAtMost || g.Of == OursBound }

func (g Goal) met(ours, ratio float64) *bool {
	var met bool
	switch g.Of {
	case RatioAtMost:
		met = ratio <= g.Value
	case RatioAbove:
		met = ratio >= g.Value
	case OursAtMost, OursBound:
		met = ours <= g.Value
	default:
		return nil
	}
	return &met
}

// Until there are enough runs to know the noise, it is assumed to be large; afterwards it is their spread, and never
// zero. If the runs vary much, as many again must follow: the speed of a machine can alternate between two levels, and
// three runs may all have met the same one on one side.
const (
	enoughRuns   = 3
	unknownNoise = 1.0
	leastSpread  = 0.05
	wideSpread   = 0.25
)

// near reports whether noise could change whether the goal is met.
func (g Goal) near(r *Result) bool {
	value := r.Ours
	if !g.ofOurs() {
		if r.Ratio == nil {
			return true // the other side was not measured
		}
		value = *r.Ratio
	}
	noise := unknownNoise
	if r.Runs >= enoughRuns && !disturbed(r.Stolen) {
		noise = min(max(r.Spread.noise(), leastSpread), unknownNoise)
		if noise > wideSpread && r.Runs < 2*enoughRuns {
			noise = unknownNoise
		}
	}
	return value > g.Value/(1+noise) && value < g.Value*(1+noise)
}

// String formats the goal for the table.
func (g Goal) String() string {
	switch g.Of {
	case RatioAtMost:
		return fmt.Sprintf("≤ %gx", g.Value)
	case RatioAbove:
		return fmt.Sprintf("≥ %gx", g.Value)
	case OursAtMost:
		return fmt.Sprintf("ours ≤ %g", g.Value)
	case OursBound:
		return fmt.Sprintf("always ≤ %g", g.Value)
	}
	return ""
}

func (c *Case) repeat() int {
	if c.Repeat == 0 {
		return 9
	}
	return c.Repeat
}

// undecided returns the variants worth repeating: those of rows whose goal is within the noise, and the floors with
// them. It contains both sides of a row or neither. In a case without goals it returns all.
func (c *Case) undecided(by sides) []string {
	var names []string
	goals := false
	for _, r := range c.Rows {
		if r.Goal.Of == NoGoal {
			continue
		}
		goals = true
		if res, measured := r.result(by); !measured || r.Goal.near(&res) {
			names = append(names, r.variants()...)
		}
	}
	for _, v := range c.Variants {
		if !goals || v.Floor && len(names) > 0 {
			names = append(names, v.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// measuredIn returns the variants of rows with fewer than that many undisturbed rounds, unless their figure is the
// same every time.
func (c *Case) measuredIn(by sides, fewerThan int) []string {
	var names []string
	for _, r := range c.Rows {
		res, _ := r.result(by)
		if !exact(r.Unit) && (res.Runs < fewerThan || disturbed(res.Stolen)) {
			names = append(names, r.variants()...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// sheltered reports whether other load does not change the figure of a row.
func (r *Row) sheltered() bool {
	number := r.Unit == "" && r.Growth == nil
	return r.Sheltered || number || exact(r.Unit) || r.Unit == "MiB"
}

// isTimed reports whether a variant is part of a row that other load can disturb.
func (c *Case) isTimed(variant string) bool {
	return slices.ContainsFunc(c.Rows,
		func(r Row) bool { return !r.sheltered() && slices.Contains(r.variants(), variant) })
}

func (c *Case) variant(name string) (Variant, error) {
	for _, v := range c.Variants {
		if v.Name == name {
			return v, nil
		}
	}
	return Variant{}, fmt.Errorf("case %s has no variant %q", c.Name, name)
}

// Validate returns an error if a row names a variant that does not exist.
func Validate(cases []Case) error {
	seen := map[string]bool{}
	for _, c := range cases {
		if seen[c.Name] {
			return fmt.Errorf("two cases are named %s", c.Name)
		}
		seen[c.Name] = true
		for _, r := range c.Rows {
			for _, v := range r.variants() {
				if !slices.ContainsFunc(c.Variants, func(have Variant) bool { return have.Name == v }) {
					return fmt.Errorf("row %q of case %s needs the variant %q, which does not exist", r.Name, c.Name, v)
				}
			}
		}
	}
	return nil
}

// variants returns the variants of a row.
func (r *Row) variants() []string {
	var all []string
	for _, side := range []string{r.Ours, r.Peer} {
		switch {
		case side == "":
		case r.Growth == nil:
			all = append(all, side)
		default:
			for _, n := range r.Growth {
				all = append(all, At(side, n))
			}
		}
	}
	return all
}

// Exponent is the unit of rows that show how a cost grows; 1 is linear.
const Exponent = "exponent"

// At returns the name of the variant of a side at one size.
func At(side string, n int) string { return fmt.Sprintf("%s@%d", side, n) }
