package informertest

import (
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// SimOptions configure a simulation.
type SimOptions struct {
	// First is the first seed, Seeds the number of seeds.
	First uint64
	Seeds int
	// Twice runs every seed twice and compares the histories.
	Twice bool
	// FailFast stops at the first seed that fails; otherwise the simulation stops after 10 of them.
	FailFast bool
	// Whole prints the whole history of a failed seed, not only the shortest one that shows the failure.
	Whole bool
	// Command is the command that reproduces a seed, with %d for the seed.
	Command string
	// Progress receives a line every few seconds; nil for none.
	Progress io.Writer
}

// SimSummary is the outcome of all seeds.
type SimSummary struct {
	Seeds, Steps, Fewest int
	// Faults counts by kind how often a fault took effect, In in how many seeds.
	Faults, In map[string]int
	// Broken counts by promise the seeds that broke it; Example has a failure of each.
	Broken  map[string]int
	Example map[string]string
	// Failed are the seeds that broke a promise.
	Failed []uint64
	Took   time.Duration
}

// FaultKinds returns the names of all simulated faults.
func FaultKinds() []string {
	var out []string
	for k := firstFault; k < allKinds; k++ {
		out = append(out, k.String())
	}
	return out
}

// Simulate runs an informer through seeds. Each seed is a random plan of writes, faults and disturbed handlers, run
// in fake time and, if the subject is a Stepper, one step at a time. The promises P1–P14 are checked. A failure is
// shrunk to the shortest history that shows it, and reported to t.
func Simulate(t *testing.T, newSubject func(SimSetup) (Simulated, error), opts SimOptions) *SimSummary {
	maxFailures := 10
	if opts.FailFast {
		maxFailures = 1
	}
	return simulate(t, newSubject, opts, maxFailures, func(text string) { t.Error(text) })
}

// Survey is like Simulate, but runs all seeds, only counts broken promises and does not fail t.
func Survey(t *testing.T, newSubject func(SimSetup) (Simulated, error), opts SimOptions) *SimSummary {
	return simulate(t, newSubject, opts, opts.Seeds+1, nil)
}

func simulate(t *testing.T, newSubject func(SimSetup) (Simulated, error), opts SimOptions,
	maxFailures int, report func(string)) *SimSummary {
	began := time.Now()
	r := &simRun{opts: opts, maxFailures: maxFailures, make: newSubject, report: report, began: began,
		sum: &SimSummary{Faults: map[string]int{}, In: map[string]int{}, Broken: map[string]int{},
			Example: map[string]string{}}}
	workers := min(runtime.GOMAXPROCS(0), max(opts.Seeds, 1))
	t.Run("seeds", func(t *testing.T) {
		for range workers {
			t.Run("worker", func(t *testing.T) {
				t.Parallel()
				for seed, ok := r.next(); ok; seed, ok = r.next() {
					r.done(t, r.one(t, seed))
				}
			})
		}
	})
	r.sum.Took = time.Since(began)
	slices.Sort(r.sum.Failed)
	return r.sum
}

// simRun is a simulation of many seeds.
type simRun struct {
	opts        SimOptions
	maxFailures int
	make        func(SimSetup) (Simulated, error)
	report      func(string)
	began       time.Time

	mu           sync.Mutex
	given        int
	lastProgress time.Time
	sum          *SimSummary
}

func (r *simRun) next() (seed uint64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.given >= r.opts.Seeds || len(r.sum.Failed) >= r.maxFailures {
		return 0, false
	}
	r.given++
	return r.opts.First + uint64(r.given) - 1, true
}

// inBubble runs a plan in its own synctest bubble.
func inBubble(t *testing.T, p *plan, make func(SimSetup) (Simulated, error), keep bool) (res *result) {
	defer func() {
		if r := recover(); r != nil {
			panic(fmt.Sprintf("seed %d: %v", p.seed, r))
		}
	}()
	synctest.Test(t, func(*testing.T) { res = runPlan(p, make, keep) })
	return res
}

// one runs one seed.
func (r *simRun) one(t *testing.T, seed uint64) *result {
	res := inBubble(t, drawPlan(seed), r.make, false)
	if r.opts.Twice && len(res.failures) == 0 {
		if again := inBubble(t, drawPlan(seed), r.make, false); again.hash != res.hash {
			res.failures = append(res.failures, failure{"determinism", "two runs of the seed have different histories"})
		}
	}
	return res
}

// done adds a seed to the summary, and reports it if it failed.
func (r *simRun) done(t *testing.T, res *result) {
	r.mu.Lock()
	s := r.sum
	s.Seeds++
	s.Steps += res.steps
	if s.Fewest == 0 || res.steps < s.Fewest {
		s.Fewest = res.steps
	}
	for k, n := range res.bites {
		if n > 0 && kind(k) >= firstFault {
			s.Faults[kind(k).String()] += n
			s.In[kind(k).String()]++
		}
	}
	counted := map[string]bool{}
	for _, f := range res.failures {
		if !counted[f.promise] {
			counted[f.promise] = true
			s.Broken[f.promise]++
			if s.Example[f.promise] == "" {
				s.Example[f.promise] = fmt.Sprintf("seed %d: %s", res.plan.seed, f.what)
			}
		}
	}
	show := len(res.failures) > 0 && r.report != nil
	if len(res.failures) > 0 {
		s.Failed = append(s.Failed, res.plan.seed)
	}
	r.progress()
	r.mu.Unlock()
	if show {
		r.report(r.explain(t, res))
	}
}

func (r *simRun) progress() {
	if r.opts.Progress == nil || time.Since(r.lastProgress) < 5*time.Second {
		return
	}
	r.lastProgress = time.Now()
	faults := 0
	for _, n := range r.sum.Faults {
		faults += n
	}
	took := time.Since(r.began)
	rate := float64(r.sum.Seeds) / took.Seconds()
	left := time.Duration(float64(r.opts.Seeds-r.sum.Seeds) / rate * float64(time.Second))
	fmt.Fprintf(r.opts.Progress, "%d of %d seeds, %.0f a second, %d faults, %d failed, %s left\n",
		r.sum.Seeds, r.opts.Seeds, rate, faults, len(r.sum.Failed), left.Round(time.Second))
}

// explain returns the shortest history that shows the failure.
func (r *simRun) explain(t *testing.T, res *result) string {
	want := res.failures[0].promise
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %s\n", res.plan.seed, res.failures[0])
	if want == "determinism" {
		fmt.Fprintf(&b, "%s\n", firstDifference(inBubble(t, drawPlan(res.plan.seed), r.make, true).lines,
			inBubble(t, drawPlan(res.plan.seed), r.make, true).lines))
		return b.String()
	}
	p := res.plan
	if !r.opts.Whole {
		p = shrink(p, func(p *plan) bool {
			return slices.ContainsFunc(inBubble(t, p, r.make, false).failures,
				func(f failure) bool { return f.promise == want })
		})
	}
	short := inBubble(t, p, r.make, true)
	fmt.Fprintf(&b,
		"%d of %d actions show the failure; keys %d, %d handlers, json %t, WatchList %t, transform %t, variant %d, "+
			"pages of %d, queue of %d bytes:\n",
		len(p.actions), len(res.plan.actions), p.keys, p.handlers, p.json, p.watchList, p.transform,
		p.variant, p.pageSize, p.queue)
	for _, line := range short.lines {
		fmt.Fprintln(&b, line)
	}
	if r.opts.Command != "" {
		fmt.Fprintf(&b, "to reproduce: "+r.opts.Command+"\n", res.plan.seed)
	}
	return b.String()
}

func firstDifference(a, b []string) string {
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			other := "nothing"
			if i < len(b) {
				other = b[i]
			}
			return fmt.Sprintf("line %d:\n%s\n%s\n%s", i, strings.Join(a[max(0, i-5):i], "\n"), a[i], other)
		}
	}
	return "the histories are the same; only the order of steps differs"
}

// String formats the summary as a few lines for a terminal.
func (s *SimSummary) String() string {
	var b strings.Builder
	faults := 0
	for _, n := range s.Faults {
		faults += n
	}
	fmt.Fprintf(&b, "\n%d seeds, %d steps (at least %d a seed), %d faults, %d seeds failed, in %s\n", s.Seeds, s.Steps,
		s.Fewest, faults, len(s.Failed), s.Took.Round(100*time.Millisecond))
	for _, kind := range FaultKinds() {
		fmt.Fprintf(&b, "  %8d times in %5.1f%% of the seeds: %s\n", s.Faults[kind],
			100*float64(s.In[kind])/float64(max(s.Seeds, 1)), kind)
	}
	for _, p := range slices.Sorted(maps.Keys(s.Broken)) {
		fmt.Fprintf(&b, "  %s broken in %d seeds, such as %s\n", p, s.Broken[p], s.Example[p])
	}
	if len(s.Failed) > 0 {
		fmt.Fprintf(&b, "  failed: %v\n", s.Failed[:min(len(s.Failed), 20)])
	}
	return b.String()
}
