package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// Options of a run.
type Options struct {
	Params Params
	// Budget is the time after which no further repetition starts; every trial runs once in any case.
	Budget time.Duration
	// Repeat, if set, is the most repetitions of every variant.
	Repeat int
	// Trials receives the measurements; if nil they are only in the rows.
	Trials Trials
	// Add makes the run add rounds to the Trials of earlier ones: first to rows with too few rounds to know how much they
	// vary, then to rows whose goal is within the noise.
	Add bool
	// Recorded, if set, makes the run a check: it repeats what looks worse than these results.
	Recorded []Result
	// Patience is how long to wait in total while the host takes much CPU time.
	Patience time.Duration
	// Progress receives the progress line; Terminal says whether it can be rewritten.
	Progress io.Writer
	Terminal bool
}

// step is one trial of the plan.
type step struct {
	c       *Case
	variant string
	round   int
}

// Run runs the cases and returns their rows. Failed trials do not end the run: the rows of the others are returned
// with an error that lists the failures.
func Run(ctx context.Context, cases []Case, o Options) (rows []Result, err error) {
	scratch, err := os.MkdirTemp("", "mirador-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the inputs: %w", err)
	}
	defer os.RemoveAll(scratch)
	params := make(map[string]*Params, len(cases))
	for i := range cases {
		p := o.Params
		p.Scratch = scratch
		params[cases[i].Name] = &p
	}

	r := &runner{o: o, cases: cases, before: recordOf(o.Recorded), stolen: stolenNow, began: time.Now(),
		took: map[string]time.Duration{}, spent: map[string]time.Duration{}, trials: o.Trials, broken: map[string]bool{}}
	if r.trials == nil {
		r.trials = Trials{}
	}
	plan := plan(cases, o)
	prepared := map[string]bool{}
	for i, s := range plan {
		if err := ctx.Err(); err != nil {
			return Rows(cases, r.trials), errors.Join(append(r.failed, err)...)
		}
		if !prepared[s.c.Name] && s.c.Prepare != nil {
			r.say("preparing %s", s.c.Name)
			cleanup, err := s.c.Prepare(ctx, params[s.c.Name])
			if cleanup != nil {
				defer cleanup()
			}
			if err != nil {
				r.failed = append(r.failed, fmt.Errorf("prepare case %s: %w", s.c.Name, err))
				r.broken[s.c.Name] = true
			}
		}
		prepared[s.c.Name] = true
		r.step(ctx, s, plan[i:], *params[s.c.Name])
	}
	r.clear()
	r.summary(cases)
	return Rows(cases, r.trials), errors.Join(r.failed...)
}

// plan orders the trials: round by round over all cases, within a case the
// variants in turn, so that the sides alternate.
func plan(cases []Case, o Options) []step {
	var all []step
	first := o.Trials.nextRound()
	for round := first; ; round++ {
		before := len(all)
		for i := range cases {
			times := cases[i].repeat()
			switch { // some rounds will be disturbed
			case o.Recorded != nil:
				times = max(times, 2*sureRounds)
			case o.Add:
				times = max(times, 2*enoughRuns)
			}
			if o.Repeat > 0 {
				times = min(times, o.Repeat)
			}
			if round-first >= times {
				continue
			}
			for _, v := range cases[i].Variants {
				all = append(all, step{&cases[i], v.Name, round})
			}
		}
		if len(all) == before {
			return all
		}
	}
}

type runner struct {
	o      Options
	cases  []Case
	before record
	stolen func() float64 // the share of CPU time that the host takes now
	waited time.Duration  // the part of Options.Patience used so far
	began  time.Time
	took   map[string]time.Duration // case and variant: how long its last trial took
	spent  map[string]time.Duration // by case, over all its trials
	trials Trials
	failed []error
	broken map[string]bool // a case, or case and variant, that failed: not run again

	round struct { // what the current round runs of the current case
		c        *Case
		number   int
		variants []string
	}
	latest struct { // the latest round in which a trial ran
		number int
		began  time.Time
	}
}

func (r *runner) step(ctx context.Context, s step, rest []step, p Params) {
	name := s.c.Name + " " + s.variant
	if r.broken[s.c.Name] || r.broken[name] {
		return
	}
	if s.round > 0 && !slices.Contains(r.again(s), s.variant) {
		return
	}
	r.waitForRound(ctx, s.round)
	if s.c.isTimed(s.variant) {
		r.waitForCalm(ctx)
	}
	r.say("%s, %s, repetition %d: %s elapsed, %s left", s.c.Name, s.variant, s.round+1,
		time.Since(r.began).Round(time.Second), r.left(rest))
	began, before := time.Now(), readTicks()
	figures, err := trial(ctx, order{s.c.Name, s.variant, p})
	if err != nil {
		r.failed = append(r.failed, err)
		r.broken[name] = true
		return
	}
	r.took[name] = time.Since(began)
	r.spent[s.c.Name] += r.took[name]
	r.trials.add(s.c.Name, s.variant, measured{s.round, figures, readTicks().stolenSince(before)})
}

// again returns the variants of a case to run in a further round. It decides for all variants when the round reaches
// the case: only rows within the noise are repeated, and compared variants run together or not at all.
func (r *runner) again(s step) []string {
	if r.round.c == s.c && r.round.number == s.round {
		return r.round.variants
	}
	chosen := r.open(s.c)
	needs := time.Since(r.began)
	for _, v := range chosen {
		needs += r.took[s.c.Name+" "+v]
	}
	if needs > r.o.Budget {
		chosen = nil
	}
	r.round.c, r.round.number, r.round.variants = s.c, s.round, chosen
	return chosen
}

// open returns the variants of a case for which another round is useful.
func (r *runner) open(c *Case) []string {
	by := r.trials[c.Name]
	switch {
	case r.o.Recorded != nil:
		return c.suspected(by, r.before, slower(r.before, Rows(r.cases, r.trials)))
	case r.o.Add:
		if few := c.measuredIn(by, enoughRuns); len(few) > 0 {
			return few
		}
	}
	return c.undecided(by)
}

// apart is the least time between the starts of two rounds of a check, which must distinguish a slow minute of the
// machine from slow code.
const apart = time.Minute

// waitForRound waits until a round of a check may start.
func (r *runner) waitForRound(ctx context.Context, round int) {
	if r.latest.number == round && !r.latest.began.IsZero() {
		return
	}
	if wait := apart - time.Since(r.latest.began); wait > 0 && r.o.Recorded != nil {
		r.say("waiting %s: rounds of a check are a minute apart", wait.Round(time.Second))
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	r.latest.number, r.latest.began = round, time.Now()
}

// left estimates the remaining time, by how long the same trial took before or, for trials that have not run yet, by
// the average of all.
func (r *runner) left(rest []step) string {
	if len(r.took) == 0 {
		return "unknown"
	}
	var sum time.Duration
	for _, d := range r.took {
		sum += d
	}
	average := sum / time.Duration(len(r.took))
	var left time.Duration
	open := map[*Case][]string{} // computed once: it looks at every row
	for _, s := range rest {
		if s.round > 0 {
			if _, known := open[s.c]; !known {
				open[s.c] = r.open(s.c)
			}
			if !slices.Contains(open[s.c], s.variant) {
				continue
			}
		}
		if d, known := r.took[s.c.Name+" "+s.variant]; known {
			left += d
		} else {
			left += average
		}
	}
	return min(left, max(0, r.o.Budget-time.Since(r.began))).Round(time.Second).String()
}

func (r *runner) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !r.o.Terminal {
		fmt.Fprintln(r.o.Progress, text)
		return
	}
	fmt.Fprintf(r.o.Progress, "\r%s\x1b[K", text)
}

// summary prints where the time went.
func (r *runner) summary(cases []Case) {
	var parts []string
	for _, c := range cases {
		if spent := r.spent[c.Name]; spent > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", c.Name, spent.Round(time.Second)))
		}
	}
	fmt.Fprintf(r.o.Progress, "took %s: %s\n", time.Since(r.began).Round(time.Second), strings.Join(parts, ", "))
}

func (r *runner) clear() {
	if r.o.Terminal {
		fmt.Fprint(r.o.Progress, "\r\x1b[K")
	}
}
