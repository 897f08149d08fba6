package harness

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSampleIsTheMedianWithItsRange(t *testing.T) {
	s, ok := sampleOf([]float64{5, 1, 3})
	if !ok || s.Median != 3 || s.Min != 1 || s.Max != 5 || s.Runs != 3 {
		t.Errorf("got %+v", s)
	}
	if s, _ := sampleOf([]float64{2, 4}); s.Median != 3 {
		t.Errorf("the median of two values is %v", s.Median)
	}
	if _, ok := sampleOf(nil); ok {
		t.Error("no values have a median")
	}
	if got := s.Spread(); math.Abs(got-2.0/3) > 1e-9 {
		t.Errorf("the spread is %v", got)
	}
}

// The machine is half as fast for two of three rounds, and one side has no trial in one of them.
func TestARatioIsTheMedianOfItsRounds(t *testing.T) {
	by := Trials{}
	for round, slow := range []float64{1, 2, 2} {
		if round != 1 {
			by.add("c", "ours", measured{round: round, figures: Figures{"ns": 10 * slow}})
		}
		by.add("c", "peer", measured{round: round, figures: Figures{"ns": 20 * slow}})
	}
	row := Row{Name: "r", Ours: "ours", Peer: "peer", Figure: "ns", Goal: Ratio(0.5)}
	res, ok := row.result(by["c"])
	if !ok || *res.Ratio != 0.5 || !*res.Met || res.Ours != 15 || *res.Peer != 30 || *res.Spread.Ratio != 0 ||
		res.Spread.noise() != 0 {
		t.Errorf("%+v", res)
	}
	// A round in which one side was disturbed does not count.
	by.add("c", "ours", measured{round: 3, figures: Figures{"ns": 1000}, stolen: 2 * calmShare})
	by.add("c", "peer", measured{round: 3, figures: Figures{"ns": 20}})
	if res, _ := row.result(by["c"]); *res.Ratio != 0.5 {
		t.Errorf("the ratio is %v", *res.Ratio)
	}
	// Without a common round there is nothing to compare.
	apart := Trials{}
	apart.add("c", "ours", measured{round: 0, figures: Figures{"ns": 10}})
	apart.add("c", "peer", measured{round: 1, figures: Figures{"ns": 20}})
	if res, _ := row.result(apart["c"]); res.Ours != 10 || res.Peer != nil || res.Ratio != nil || res.Met != nil {
		t.Errorf("%+v", res)
	}
}

func TestMediansAreComputedPerFigure(t *testing.T) {
	got := Medians([]Figures{{"a": 3, "b": 1}, {"a": 1}, {"a": 2, "b": 3}})
	if len(got) != 2 || got["a"] != 2 || got["b"] != 2 {
		t.Errorf("the medians are %v", got)
	}
}

func TestRowsCompareMediansAndJudgeGoals(t *testing.T) {
	by := Trials{}
	for i, v := range []float64{10, 20, 30} {
		by.add("c", "ours", measured{round: i, figures: Figures{"ns": v}})
		by.add("c", "peer", measured{round: i, figures: Figures{"ns": v * 10}})
	}
	for _, test := range []struct {
		goal Goal
		met  bool
	}{{Ratio(0.1), true}, {Ratio(0.09), false}, {Times(0.05), true}, {Times(2), false}, {AtMost(20),
		true}, {AtMost(19), false}} {
		row := Row{Name: "r", Ours: "ours", Peer: "peer", Figure: "ns", Goal: test.goal}
		res, ok := row.result(by["c"])
		if !ok || *res.Ratio != 0.1 || res.Ours != 20 || *res.Peer != 200 || *res.Met != test.met {
			t.Errorf("%v: %+v", test.goal, res)
		}
	}
	without := Row{Ours: "ours", Figure: "ns"}
	if res, _ := without.result(by["c"]); res.Met != nil || res.Ratio != nil || res.Peer != nil {
		t.Errorf("a row without peer and goal is %+v", res)
	}
	missing := Row{Ours: "ours", Figure: "no such figure"}
	if _, ok := missing.result(by["c"]); ok {
		t.Error("a row that was not measured is in the result")
	}
}

func TestGrowthIsTheExponentOfTheSize(t *testing.T) {
	by := Trials{}
	for _, n := range []int{10, 100, 1000} {
		by.add("c", At("ours", n), measured{figures: Figures{"cost": 3 * float64(n)}})
		by.add("c", At("peer", n), measured{figures: Figures{"cost": float64(n) * float64(n)}})
	}
	row := Row{Ours: "ours", Peer: "peer", Figure: "cost", Growth: []int{10, 100, 1000}, Goal: AtMost(1.1)}
	res, ok := row.result(by["c"])
	if !ok || math.Abs(res.Ours-1) > 1e-9 || math.Abs(*res.Peer-2) > 1e-9 || !*res.Met || res.Ratio != nil {
		t.Errorf("got %+v", res)
	}
}

func TestVariantsAlternateWithinRoundsOverAllCases(t *testing.T) {
	cases := []Case{
		{Name: "a", Repeat: 2, Variants: []Variant{{Name: "x"}, {Name: "y"}}},
		{Name: "b", Repeat: 1, Variants: []Variant{{Name: "z"}}},
	}
	var got []string
	for _, s := range plan(cases, Options{}) {
		got = append(got, s.c.Name+s.variant)
	}
	if want := "ax ay bz ax ay"; strings.Join(got, " ") != want {
		t.Errorf("the plan is %v, want %s", got, want)
	}
	if got := plan(cases, Options{Repeat: 1}); len(got) != 3 {
		t.Errorf("one repetition has %d trials", len(got))
	}
}

func TestOnlyRowsWithinTheNoiseAreRepeated(t *testing.T) {
	c := Case{Name: "c", Variants: []Variant{{Name: "ours"}, {Name: "peer"}, {Name: "other"},
		{Name: "least", Floor: true}}}
	by := Trials{}
	for _, v := range c.Variants {
		by.add("c", v.Name, measured{figures: Figures{"ns": 10}})
	}
	repeated := func(variant string) bool { return slices.Contains(c.undecided(by["c"]), variant) }
	if !repeated("other") {
		t.Error("without goals everything is repeated")
	}
	for _, test := range []struct {
		goal Goal
		open bool
	}{
		{Ratio(1), true}, {Ratio(0.6), true}, {Ratio(1.9), true}, {Ratio(2), false}, {Ratio(0.5), false},
		{Times(1), true}, {Times(0.5), false}, {Times(2), false},
		{AtMost(10), true}, {AtMost(20), false}, {AtMost(5), false},
	} {
		c.Rows = []Row{{Ours: "other", Figure: "ns"}, {Ours: "ours", Peer: "peer", Figure: "ns", Goal: test.goal}}
		for variant, open := range map[string]bool{"ours": test.open, "peer": test.open,
			"least": test.open, "other": false} {
			if got := repeated(variant); got != open {
				t.Errorf("with the goal %v, to repeat %s is %v", test.goal, variant, got)
			}
		}
	}
	disturbance := measured{figures: Figures{"ns": 10}, stolen: 2 * calmShare}
	c.Rows = []Row{{Unit: "ns", Ours: "ours", Peer: "peer", Figure: "ns", Goal: Ratio(1.1)}}
	busy := Trials{}
	for range enoughRuns {
		busy.add("c", "ours", disturbance)
		busy.add("c", "peer", disturbance)
	}
	if len(c.undecided(busy["c"])) == 0 {
		t.Error("a goal was decided by disturbed runs only")
	}
	if got := c.measuredIn(busy["c"], enoughRuns); len(got) != 2 {
		t.Errorf("with disturbed runs only, the variants to repeat are %v", got)
	}
	if c.Rows[0].Unit = "MiB"; len(c.measuredIn(busy["c"], enoughRuns)) != 0 {
		t.Error("memory is measured again because its runs were disturbed")
	}
	for range enoughRuns {
		by.add("c", "ours", measured{figures: Figures{"ns": 10}})
		by.add("c", "peer", measured{figures: Figures{"ns": 10}})
	}
	for goal, open := range map[float64]bool{1: true, 1.04: true, 1.1: false, 0.9: false} {
		c.Rows = []Row{{Ours: "ours", Peer: "peer", Figure: "ns", Goal: Ratio(goal)}}
		if repeated("ours") != open {
			t.Errorf("after runs that agree, with the goal %v, to repeat is %v", goal, !open)
		}
	}
	far := Trials{}
	for runs := 1; runs <= 2*enoughRuns; runs++ {
		far.add("c", "ours", measured{round: runs, figures: Figures{"ns": 4 + 2*float64(runs%3)}}) // 4, 6 and 8 of 10
		far.add("c", "peer", measured{round: runs, figures: Figures{"ns": 10}})
		c.Rows = []Row{{Ours: "ours", Peer: "peer", Figure: "ns", Goal: Ratio(1.1)}}
		if open := len(c.undecided(far["c"])) > 0; open != (runs < 2*enoughRuns) {
			t.Errorf("after %d runs that lie far apart, to repeat is %v", runs, open)
		}
	}
	by.add("c", "ours", measured{figures: Figures{"ns": 6}})
	if c.Rows = []Row{{Ours: "ours", Peer: "peer", Figure: "ns", Goal: Ratio(1.1)}}; !repeated("peer") {
		t.Error("a goal was decided by runs that do not agree")
	}
	c.Rows = []Row{{Ours: "ours", Peer: "absent", Figure: "ns", Goal: Ratio(5)}}
	if !repeated("ours") {
		t.Error("a row without its other side is decided already")
	}
}

// If both sides do not fit into the remaining time, neither runs: a ratio needs figures from the same minutes.
func TestComparedVariantsAreRepeatedTogetherOrNotAtAll(t *testing.T) {
	c := &Case{Name: "c", Variants: []Variant{{Name: "ours"}, {Name: "peer"}},
		Rows: []Row{{Ours: "ours", Peer: "peer", Figure: "ns", Goal: Ratio(1)}}}
	for budget, want := range map[time.Duration]int{time.Hour: 2, 90 * time.Second: 0} {
		r := &runner{o: Options{Budget: budget}, began: time.Now(), trials: Trials{},
			took: map[string]time.Duration{"c ours": time.Minute, "c peer": time.Minute}}
		r.trials.add("c", "ours", measured{figures: Figures{"ns": 1}})
		r.trials.add("c", "peer", measured{figures: Figures{"ns": 1}})
		if got := r.again(step{c, "ours", 1}); len(got) != want {
			t.Errorf("with %v, %v are repeated", budget, got)
		}
		// This affects only the next round.
		r.trials.add("c", "ours", measured{figures: Figures{"ns": 1000}})
		if got := r.again(step{c, "peer", 1}); len(got) != want {
			t.Errorf("with %v, %v are repeated in the middle of a round", budget, got)
		}
		if got := r.again(step{c, "ours", 2}); len(got) != 0 {
			t.Errorf("with %v, %v are repeated although they are decided", budget, got)
		}
	}
}

func TestRowsOfUnknownVariantsAreErrors(t *testing.T) {
	c := Case{Name: "c", Variants: []Variant{{Name: "x"}}, Rows: []Row{{Name: "r", Ours: "x", Peer: "y"}}}
	if err := Validate([]Case{c}); err == nil || !strings.Contains(err.Error(), `"y"`) {
		t.Errorf("got %v", err)
	}
}

func TestChildRunsTheRequestedTrial(t *testing.T) {
	cases := []Case{{Name: "c", Variants: []Variant{{Name: "v", Run: func(_ context.Context, p *Params) (Figures, error) {
		return Figures{"size": float64(p.Size(10, 1))}, nil
	}}}}}
	var out strings.Builder
	in := strings.NewReader(`{"case":"c","variant":"v","params":{"quick":true}}`)
	if err := Child(t.Context(), cases, in, &out); err != nil || strings.TrimSpace(out.String()) != `{"size":1}` {
		t.Errorf("%v, %s", err, &out)
	}
	for _, bad := range []string{`{"case":"d"}`, `{"case":"c","variant":"w"}`, `no JSON`} {
		if err := Child(t.Context(), cases, strings.NewReader(bad), &out); err == nil {
			t.Errorf("%s did not fail", bad)
		}
	}
}

func TestTimeLeftNeverExceedsTheBudget(t *testing.T) {
	r := &runner{o: Options{Budget: time.Minute}, began: time.Now(), took: map[string]time.Duration{"a x": time.Hour}}
	if left := r.left([]step{{&Case{Name: "a"}, "x", 0}}); left != "1m0s" {
		t.Errorf("%s are left", left)
	}
}

func TestNumbersHaveThreeSignificantDigits(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1: "1", 0.0374: "0.0374", 12.345: "12.3", 1234567: "1,234,567",
		0.5: "0.5", -20: "-20"} {
		if got := Number(v); got != want {
			t.Errorf("%v is written %s, want %s", v, got, want)
		}
	}
}
