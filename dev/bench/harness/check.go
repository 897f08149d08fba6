package harness

import (
	"fmt"
	"slices"
	"strings"
)

// A check measures everything once and what then looks worse than recorded again, until it does not or has been worse
// in so many rounds that it is sure. Code that got slower is slower in all of them; a machine's bad minute is over in
// one of the next. Runs of the same code lie further apart than rounds of one run: a record of several says how far.

// How many rounds have to agree that a row is worse: a time, and a heap, which comes out the same.
const (
	sureRounds  = 5
	exactRounds = 2
)

// What is taken for noise however close the rounds of the record were. Heaps come out the same.
const (
	leastNoise = 0.15
	exactNoise = 0.05
)

// id is what a row is recognised by in another run.
type id struct {
	name, layout, unit string
	objects            int
}

func (r *Result) id() id { return id{r.Case, r.Layout, r.Unit, r.Objects} }

// record is what was measured before.
type record map[id]Result

func recordOf(rows []Result) record {
	all := record{}
	for _, r := range rows {
		all[r.id()] = r
	}
	return all
}

// slower is how many times as slow as then the machine is now, by the times of the peers, whose code is the same: the
// median over all rows that have one. A faster one counts as the same.
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

// Verdict is what a check found.
type Verdict struct {
	// Worse says which rows are worse than recorded by more than the noise, in as many rounds as it takes to be sure.
	Worse []string
	// Unsure says which look so in fewer: the time was over.
	Unsure []string
	// Disturbed says which look so and tell nothing: others took the processors from every trial.
	Disturbed []string
	// Compared is how many rows were, and Blind of how many of them a change by half would not have been seen: they were
	// recorded in too few rounds, these lay far apart, or others took much of the processors, then or now.
	Compared, Blind int
}

// Compare holds what was measured against the record. Rows that were not measured now, or not recorded, are not
// compared.
func Compare(recorded, now []Result) (v Verdict) {
	before := recordOf(recorded)
	machine := slower(before, now)
	for _, r := range now {
		was, known := before[r.id()]
		if !known {
			continue
		}
		what, bad := r.worseThan(&was, machine)
		switch said := fmt.Sprintf("%s (%s): %s", r.Title(), r.Layout, what); {
		case !bad:
		case r.tellsNothing():
			v.Disturbed = append(v.Disturbed, fmt.Sprintf("%s; others took %s of the processors", said, percent(r.Stolen)))
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

// worseThan says by what a row is worse than it was, if it is: by its best round, on a machine that is so many times
// as slow.
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
	case r.GoalOf != OursAtMost:
		return "", false
	case r.dependsOnTheMachine():
		// Nothing beside it tells a slower machine from slower code, so the goal is what it is held to.
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

// noise is how far a run of the same code may lie from a recorded row.
func (r *Result) noise(now *Result) float64 {
	switch {
	case exact(r.Unit):
		return exactNoise
	case r.Runs < enoughRuns:
		return unknownNoise
	}
	noise := max(leastNoise, r.Spread.noise(), 2*r.Stolen, 2*now.Stolen)
	if r.Peer != nil && now.Peer != nil {
		// The peer is the same code both times: what it changed by is the machine's doing, and ours may depend on it where
		// the peer does not, or the other way round.
		noise = max(noise, factor(*r.Peer, *now.Peer)-1)
	}
	return noise
}

// factor is how many times one is the other, the larger the smaller.
func factor(a, b float64) float64 {
	if a <= 0 || b <= 0 {
		return 1
	}
	return max(a/b, b/a)
}

// sure reports whether there are rounds enough to call a row worse.
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

// moreIsBetter reports whether a larger ratio is the better one: by its goal, or because it is a rate.
func (r *Result) moreIsBetter() bool {
	return r.GoalOf == RatioAbove || strings.HasSuffix(r.Unit, "/s")
}

// exact reports whether the figures of a unit come out the same every time: what an object or an informer takes in
// the heap.
func exact(unit string) bool { return unit == "B" || unit == "KiB" }

// tellsNothing reports whether others took so much of the processors that a figure is theirs.
func (r *Result) tellsNothing() bool { return r.Stolen > tooMuch }

// dependsOnTheMachine reports whether a figure is a time or made of times.
func (r *Result) dependsOnTheMachine() bool {
	return slices.Contains([]string{"ns", "us", "ms", "s", Exponent}, r.Unit)
}

// suspected are the variants of a case that have a part in a row which looks worse than recorded, and may yet turn
// out not to be.
func (c *Case) suspected(by sides, before record, machine float64) []string {
	var names []string
	for _, row := range c.Rows {
		res, measured := row.result(by)
		if !measured || res.sure() && !res.tellsNothing() {
			continue
		}
		was, known := before[res.id()]
		if !known {
			continue
		}
		if _, worse := res.worseThan(&was, machine); worse {
			names = append(names, row.variants()...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
