package harness

import (
	"fmt"
	"slices"
	"strings"
)

// A check measures everything once, and repeats what looks worse than recorded until it no longer does or has been
// worse in enough rounds to be sure. Slower code is slower in all rounds; a slow minute of the machine affects few.
// Runs of the same code differ more than rounds of one run: a record of several runs shows by how much.

// How many rounds have to agree that a row is worse: for a time, and for a heap size, which hardly varies.
const (
	sureRounds  = 5
	exactRounds = 2
)

// The least noise that is assumed, however little the rounds of the record vary. Heap sizes hardly vary.
const (
	leastNoise = 0.15
	exactNoise = 0.05
)

// id identifies a row across runs.
type id struct {
	name, layout, unit string
	objects            int
}

func (r *Result) id() id { return id{r.Case, r.Layout, r.Unit, r.Objects} }

// record is the recorded results.
type record map[id]Result

func recordOf(rows []Result) record {
	all := record{}
	for _, r := range rows {
		all[r.id()] = r
	}
	return all
}

// slower returns how many times slower the machine is now than when the record was made, by the times of the peers,
// whose code is the same: the median over all rows with a peer. A faster machine counts as equal.
func slower(before record, now []Result) float64 {
	var all []float64
	for _, r := range now {
		was, known := before[r.id()]
		if known && r.dependsOnTheMachine() && r.Unit != Exponent && r.Peer != nil && was.Peer != nil && *was.Peer > 0 &&
			!disturbed(r.Stolen) {
			all = append(all, *r.Peer / *was.Peer)
		}
	}
	s, _ := sampleOf(all)
	return max(s.Median, 1)
}

// Verdict is the result of a check.
type Verdict struct {
	// Worse describes the rows that are worse than recorded by more than the noise, in enough rounds to be sure.
	Worse []string
	// Unsure describes the rows that look worse in fewer rounds, because the time ran out.
	Unsure []string
	// Disturbed describes the rows that look worse, but where the host took CPU time from every trial.
	Disturbed []string
	// Compared is how many rows were compared, and Blind in how many of them a change by half would have been missed:
	// they were recorded in too few rounds, these varied much, or the host took much CPU time, then or now.
	Compared, Blind int
}

// Compare compares the measured rows with the record. Rows that were not measured now are ignored, and those that were
// not recorded, unless they have a bound.
func Compare(recorded, now []Result) (v Verdict) {
	before := recordOf(recorded)
	machine := slower(before, now)
	for _, r := range now {
		was, known := before[r.id()]
		if !known && r.GoalOf != OursBound {
			continue
		}
		what, bad := r.worseThan(&was, machine)
		switch said := fmt.Sprintf("%s (%s): %s", r.Title(), r.Layout, what); {
		case !bad:
		case r.tellsNothing():
			v.Disturbed = append(v.Disturbed, fmt.Sprintf("%s; the host took %s of the CPU time", said, percent(r.Stolen)))
		case r.sure():
			v.Worse = append(v.Worse, said)
		default:
			v.Unsure = append(v.Unsure, said)
		}
		if what != "" {
			v.Compared++
			if was.noise(&r) > 0.5 {
				v.Blind++
			}
		}
	}
	return v
}

// worseThan describes how a row is worse than recorded, if it is: by its best round, on a machine that is this many
// times slower.
func (r *Result) worseThan(was *Result, machine float64) (what string, worse bool) {
	in := fmt.Sprintf("in the best of %d rounds", r.Runs)
	if r.Runs == 1 {
		in = "in one round"
	}
	noise := was.noise(r)
	switch {
	case r.Ratio != nil && was.Ratio != nil:
		best := r.best(*r.Ratio, r.Spread.RatioRange)
		worse = best > *was.Ratio*(1+noise)
		if r.moreIsBetter() {
			worse = best < *was.Ratio/(1+noise)
		}
		return fmt.Sprintf("the ratio is %s %s, recorded %s, noise %s", Number(best), in, Number(*was.Ratio),
			percent(noise)), worse
	case r.GoalOf == OursBound:
		best := r.best(r.Ours, &r.Spread.OursRange)
		return fmt.Sprintf("it is %s %s, and must not be above %s", Number(best), in, Number(*r.Goal)), best > *r.Goal
	case r.GoalOf != OursAtMost:
		return "", false
	case r.dependsOnTheMachine():
		// Without a peer, slower code cannot be told from a slower machine, so the row is judged by its goal.
		best, goal := r.best(r.Ours, &r.Spread.OursRange), *r.Goal
		if r.Unit != Exponent {
			goal *= machine
		}
		worse = was.Met != nil && *was.Met && best > goal
		return fmt.Sprintf("it is %s %s and misses its goal, which is %s on this machine now, recorded %s", Number(best), in,
			Number(goal), Number(was.Ours)), worse
	default:
		best := r.best(r.Ours, &r.Spread.OursRange)
		return fmt.Sprintf("it is %s %s, recorded %s, noise %s", Number(best), in, Number(was.Ours),
			percent(noise)), best > was.Ours*(1+noise)
	}
}

// noise returns how far a run of the same code may differ from a recorded row.
func (r *Result) noise(now *Result) float64 {
	switch {
	case exact(r.Unit):
		return exactNoise
	case r.Runs < enoughRuns:
		return unknownNoise
	}
	noise := max(leastNoise, r.Spread.noise(), 2*r.Stolen, 2*now.Stolen)
	if r.Peer != nil && now.Peer != nil {
		// The peer's code is the same both times: its change comes from the machine, and may affect only one of the sides.
		noise = max(noise, factor(*r.Peer, *now.Peer)-1)
	}
	return noise
}

// factor returns the ratio of the larger to the smaller value.
func factor(a, b float64) float64 {
	if a <= 0 || b <= 0 {
		return 1
	}
	return max(a/b, b/a)
}

// sure reports whether there are enough rounds to call a row worse.
func (r *Result) sure() bool {
	if exact(r.Unit) {
		return r.Runs >= exactRounds
	}
	return r.Runs >= sureRounds
}

func (r *Result) best(one float64, all *[2]float64) float64 {
	switch {
	case all == nil || r.Unit == Exponent:
		return one
	case r.moreIsBetter():
		return all[1]
	}
	return all[0]
}

// moreIsBetter reports whether a larger ratio is better: by its goal, or because it is a rate.
func (r *Result) moreIsBetter() bool {
	return r.GoalOf == RatioAbove || strings.HasSuffix(r.Unit, "/s")
}

// exact reports whether figures of a unit are the same every time: the heap of an object or an informer.
func exact(unit string) bool { return unit == "B" || unit == "KiB" }

// tellsNothing reports whether the host took so much CPU time that the figure is useless.
func (r *Result) tellsNothing() bool { return r.Stolen > tooMuch }

// dependsOnTheMachine reports whether a figure is a time or derived from times.
func (r *Result) dependsOnTheMachine() bool {
	return slices.Contains([]string{"ns", "us", "ms", "s", Exponent}, r.Unit)
}

// suspected returns the variants of a case that are part of a row which looks worse than recorded without being sure.
func (c *Case) suspected(by sides, before record, machine float64) []string {
	var names []string
	for _, row := range c.Rows {
		res, measured := row.result(by)
		if !measured || res.sure() && !res.tellsNothing() {
			continue
		}
		was, known := before[res.id()]
		if !known && res.GoalOf != OursBound {
			continue
		}
		if _, worse := res.worseThan(&was, machine); worse {
			names = append(names, row.variants()...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
