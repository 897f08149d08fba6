package harness

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// rounds returns a row with the ratios of several rounds.
func rounds(unit string, goal Goal, ratios ...float64) Result {
	by := Trials{}
	for i, v := range ratios {
		by.add("c", "ours", measured{round: i, figures: Figures{"f": v}})
		by.add("c", "peer", measured{round: i, figures: Figures{"f": 1}})
	}
	row := Row{Name: "c", Layout: "live", Unit: unit, Ours: "ours", Peer: "peer", Figure: "f", Goal: goal}
	res, _ := row.result(by["c"])
	return res
}

// withoutPeer returns a row without a peer.
func withoutPeer(unit string, goal Goal, values ...float64) Result {
	by := Trials{}
	for i, v := range values {
		by.add("c", "ours", measured{round: i, figures: Figures{"f": v}})
	}
	row := Row{Name: "c", Layout: "live", Unit: unit, Ours: "ours", Figure: "f", Goal: goal}
	res, _ := row.result(by["c"])
	return res
}

func TestCheckAllowsOnlyTheNoise(t *testing.T) {
	none := Goal{}
	slow := rounds("ns", none, 1.35, 1.35, 1.35)
	*slow.Peer = 1.4
	disturbance := rounds("ns", none, 1.35, 1.35, 1.35)
	disturbance.Stolen = 0.2
	for _, test := range []struct {
		name     string
		was, now Result
		worse    bool
	}{
		{"the same", rounds("ns", none, 1, 1, 1), rounds("ns", none, 1), false},
		{"below the least noise", rounds("ns", none, 1, 1, 1), rounds("ns", none, 1.14), false},
		{"above it", rounds("ns", none, 1, 1, 1), rounds("ns", none, 1.16), true},
		{"above it, and the host took a fifth of the CPU time", rounds("ns", none, 1, 1, 1), disturbance, false},
		{"within the recorded spread", rounds("ns", none, 0.5, 1, 1.5), rounds("ns", none, 1.4), false},
		{"above the recorded spread", rounds("ns", none, 0.5, 1, 1.5), rounds("ns", none, 1.6), true},
		{"one round of several is as good as recorded", rounds("ns", none, 1, 1, 1), rounds("ns", none, 2, 1.1, 2), false},
		{"no round of several is as good as recorded", rounds("ns", none, 1, 1, 1), rounds("ns", none, 2, 1.2, 2), true},
		{"twice a record of two rounds", rounds("ns", none, 1, 1), rounds("ns", none, 1.9, 1.9), false},
		{"more than twice a record of two rounds", rounds("ns", none, 1, 1), rounds("ns", none, 2.1, 2.1), true},
		{"off by as much as the peer", rounds("ns", none, 1, 1, 1), slow, false},
		{"better", rounds("ns", none, 1, 1, 1), rounds("ns", none, 0.1), false},
		{"a heap that hardly changed", rounds("B", none, 1), rounds("B", none, 1.04), false},
		{"a heap that grew", rounds("B", none, 1), rounds("B", none, 1.06), true},
		{"fewer where more is better", rounds("", Times(2), 2000, 2000, 2000), rounds("", Times(2), 1000), true},
		{"fewer in one round of two", rounds("", Times(2), 2000, 2000, 2000), rounds("", Times(2), 1000, 1900), false},
		{"more where more is better", rounds("", Times(2), 2000, 2000, 2000), rounds("", Times(2), 9000), false},
		{"a lower rate without a goal", rounds("updates/s", none, 474, 474, 474), rounds("updates/s", none, 300), true},
		{"a higher rate without a goal", rounds("updates/s", none, 474, 474, 474), rounds("updates/s", none, 817), false},
		{"a time without a peer that still meets its goal", withoutPeer("ms", AtMost(2), 0.5, 0.5, 0.5),
			withoutPeer("ms", AtMost(2), 1.9), false},
		{"a time without a peer that misses its goal", withoutPeer("ms", AtMost(2), 0.5, 0.5, 0.5),
			withoutPeer("ms", AtMost(2), 2.1), true},
		{"a time without a peer that missed its goal before", withoutPeer("ms", AtMost(2), 2.5, 2.5, 2.5),
			withoutPeer("ms", AtMost(2), 4), false},
		{"memory without a peer that grew below its goal", withoutPeer("MiB", AtMost(768), 500, 500, 500),
			withoutPeer("MiB", AtMost(768), 600), true},
		{"a time with neither peer nor goal", withoutPeer("ms", none, 1, 1, 1), withoutPeer("ms", none, 100), false},
		{"within its bound", withoutPeer("x", Bound(1.2), 0.8, 0.8, 0.8), withoutPeer("x", Bound(1.2), 1.19), false},
		{"above its bound by less than the noise", withoutPeer("x", Bound(1.2), 1.1, 1.1, 1.1),
			withoutPeer("x", Bound(1.2), 1.21), true},
		{"above its bound, as recorded", withoutPeer("us", Bound(5), 6, 6, 6), withoutPeer("us", Bound(5), 6), true},
		{"within its bound in one round of two", withoutPeer("us", Bound(5), 4, 4, 4), withoutPeer("us", Bound(5), 6, 4),
			false},
		{"above its bound, and not recorded", rounds("ns", none, 1), withoutPeer("ms", Bound(2), 3), true},
		{"another unit", rounds("ns", none, 1, 1, 1), rounds("us", none, 9), false},
	} {
		if v := Compare([]Result{test.was}, []Result{test.now}); looksWorse(v) != test.worse {
			t.Errorf("%s: %+v", test.name, v)
		}
	}
}

func TestADisturbedRowIsNotWorse(t *testing.T) {
	taken := func(r Result) Result { r.Stolen = 2 * tooMuch; return r }
	far := []float64{9, 9, 9, 9, 9}
	v := Compare([]Result{rounds("ns", Goal{}, 1, 1, 1)}, []Result{taken(rounds("ns", Goal{}, far...))})
	if len(v.Worse)+len(v.Unsure) > 0 || len(v.Disturbed) != 1 || !strings.Contains(v.Disturbed[0], "the host took 50%") {
		t.Errorf("a time: %+v", v)
	}
	for _, row := range []Row{{Unit: "ns", Sheltered: true}, {Unit: "B"}, {Unit: "MiB"}, {}, {Unit: "us"},
		{Unit: "s", Goal: Ratio(1)}} {
		row.Name, row.Ours, row.Peer, row.Figure = "c", "ours", "peer", "f"
		was, now := sides{}, sides{}
		for i, value := range far {
			for v, by := range map[string]float64{"ours": value, "peer": 1} {
				was[v] = append(was[v], measured{i, Figures{"f": 1}, 0})
				now[v] = append(now[v], measured{i, Figures{"f": by}, 2 * tooMuch})
			}
		}
		before, _ := row.result(was)
		after, _ := row.result(now)
		v := Compare([]Result{before}, []Result{after})
		if dependsOnOthers := row.Unit == "us" || row.Unit == "s"; len(v.Worse) == 1 == dependsOnOthers ||
			len(v.Disturbed) == 1 != dependsOnOthers {
			t.Errorf("a figure in %q, sheltered: %v: %+v", row.Unit, row.Sheltered, v)
		}
	}
}

func looksWorse(v Verdict) bool { return len(v.Worse)+len(v.Unsure) > 0 }

func TestCheckIsSureWhenEnoughRoundsAgree(t *testing.T) {
	was := rounds("ns", Goal{}, 1, 1, 1)
	said := "c (live): the ratio is 2 in the best of 4 rounds, recorded 1, noise 15%"
	if v := Compare([]Result{was}, []Result{rounds("ns", Goal{}, 3, 2, 4, 2)}); len(v.Worse) > 0 ||
		!slices.Equal(v.Unsure, []string{said}) {
		t.Errorf("after four rounds: %+v, want that it is not sure of %q", v, said)
	}
	said = "c (live): the ratio is 2 in the best of 5 rounds, recorded 1, noise 15%"
	if v := Compare([]Result{was}, []Result{rounds("ns", Goal{}, 3, 2, 4, 2, 9)}); len(v.Unsure) > 0 ||
		!slices.Equal(v.Worse, []string{said}) {
		t.Errorf("after five rounds: %+v, want %q", v, said)
	}
	if v := Compare([]Result{rounds("B", Goal{}, 1)}, []Result{rounds("B", Goal{}, 2, 2)}); len(v.Worse) != 1 {
		t.Errorf("after two rounds of a heap: %+v", v)
	}
}

func TestATimeWithoutAPeerIsJudgedByItsGoalOnThisMachine(t *testing.T) {
	goal := AtMost(2)
	beside := rounds("us", Goal{}, 1, 1, 1)
	slow := beside
	slow.Peer = new(1.5 * *beside.Peer)
	for value, worse := range map[float64]bool{2.9: false, 3.1: true} {
		v := Compare([]Result{withoutPeer("ms", goal, 1, 1, 1), beside}, []Result{withoutPeer("ms", goal, value), slow})
		if looksWorse(v) != worse {
			t.Errorf("%v ms on a machine that takes half as long again, with a goal of 2: %+v", value, v)
		}
	}
	slow.Stolen = 2 * calmShare // says nothing about the speed of the machine
	if v := Compare([]Result{withoutPeer("ms", goal, 1, 1, 1), beside},
		[]Result{withoutPeer("ms", goal, 2.9), slow}); len(v.Unsure) != 1 {
		t.Errorf("the check returned %+v", v)
	}
}

func TestCheckReportsTheRowsItCouldNotJudge(t *testing.T) {
	none, taken := Goal{}, rounds("ns", Goal{}, 1, 1, 1)
	taken.Stolen = 0.4
	for _, test := range []struct {
		name            string
		was, now        Result
		compared, blind int
	}{
		{"close rounds", rounds("ns", none, 1, 1, 1), rounds("ns", none, 1), 1, 0},
		{"one round", rounds("ns", none, 1), rounds("ns", none, 1), 1, 1},
		{"one round of a heap", rounds("B", none, 1), rounds("B", none, 1), 1, 0},
		{"rounds that vary much", rounds("ns", none, 0.4, 1, 1.6), rounds("ns", none, 1), 1, 1},
		{"CPU time taken by the host", rounds("ns", none, 1, 1, 1), taken, 1, 1},
		{"neither peer nor goal", withoutPeer("ms", none, 1), withoutPeer("ms", none, 1), 0, 0},
		{"not recorded", rounds("us", none, 1), rounds("ns", none, 1), 0, 0},
	} {
		if v := Compare([]Result{test.was}, []Result{test.now}); v.Compared != test.compared || v.Blind != test.blind {
			t.Errorf("%s: %+v", test.name, v)
		}
	}
}

// checked returns a case with a row that is worse than recorded and one that is not.
func checked() (*Case, []Result) {
	c := &Case{
		Name:     "c",
		Variants: []Variant{{Name: "slow"}, {Name: "same"}, {Name: "peer"}},
		Rows: []Row{
			{Name: "slow", Unit: "ns", Ours: "slow", Peer: "peer", Figure: "f"},
			{Name: "same", Unit: "ns", Ours: "same", Peer: "peer", Figure: "f", Goal: Ratio(1)},
			{Name: "new", Unit: "ns", Ours: "slow", Peer: "same", Figure: "f"},
		},
	}
	by := sides{}
	for i := range 3 {
		for _, v := range c.Variants {
			by[v.Name] = append(by[v.Name], measured{round: i, figures: Figures{"f": 1}})
		}
	}
	return c, Rows([]Case{{Name: "c", Rows: c.Rows[:2]}}, Trials{"c": by})
}

func TestCheckRepeatsWhatLooksWorseUntilItIsSure(t *testing.T) {
	c, recorded := checked()
	r := &runner{o: Options{Budget: time.Hour, Recorded: recorded}, before: recordOf(recorded), cases: []Case{*c},
		began: time.Now(), trials: Trials{}, took: map[string]time.Duration{}}
	round := func(i int, slow float64) {
		for variant, value := range map[string]float64{"slow": slow, "same": 1, "peer": 1} {
			r.trials.add("c", variant, measured{round: i, figures: Figures{"f": value}})
		}
	}
	for i := range sureRounds {
		round(i, 2)
		got := r.again(step{c, "slow", i + 1})
		if want := []string{"peer", "slow"}; i+1 < sureRounds && !slices.Equal(got, want) {
			t.Errorf("after %d rounds %v are repeated, want %v", i+1, got, want)
		}
	}
	if got := r.again(step{c, "slow", sureRounds + 1}); len(got) != 0 {
		t.Errorf("after %d rounds that agree %v are repeated", sureRounds, got)
	}
	if worse := Compare(recorded, Rows([]Case{*c}, r.trials)).Worse; len(worse) != 1 ||
		!strings.HasPrefix(worse[0], "slow") {
		t.Errorf("worse are %v", worse)
	}
	r.trials = Trials{}
	round(0, 2)
	round(1, 1.1)
	if got := r.again(step{c, "slow", 2}); len(got) != 0 {
		t.Errorf("after a round that is as good as recorded %v are repeated", got)
	}
}

func TestAddRepeatsUntilThreeUndisturbedRounds(t *testing.T) {
	c, _ := checked()
	c.Variants = append(c.Variants, Variant{Name: "heap"})
	c.Rows = append(c.Rows, Row{Name: "heap", Unit: "B", Ours: "heap", Figure: "f"})
	r := &runner{o: Options{Budget: time.Hour, Add: true}, began: time.Now(), trials: Trials{},
		took: map[string]time.Duration{}}
	r.trials.add("c", "heap", measured{figures: Figures{"f": 0.1}})
	round := func(i int, stolen float64) {
		for _, v := range []string{"slow", "same", "peer"} {
			value := 0.1
			if v == "peer" {
				value = 9 // so that the goal is outside the noise
			}
			r.trials.add("c", v, measured{round: i, figures: Figures{"f": value}, stolen: stolen})
		}
	}
	for i, stolen := range []float64{0, 2 * calmShare, 0} { // the second is disturbed
		round(i, stolen)
		if got, want := r.again(step{c, "slow", i + 1}), []string{"peer", "same", "slow"}; !slices.Equal(got, want) {
			t.Errorf("after %d rounds %v are repeated, want %v", i+1, got, want)
		}
	}
	round(3, 0)
	if got := r.again(step{c, "slow", 4}); len(got) != 0 {
		t.Errorf("after three rounds that count %v are repeated", got)
	}
}

func TestRoundsOfACheckAreAMinuteApart(t *testing.T) {
	for _, test := range []struct {
		recorded []Result
		round    int
		want     time.Duration
	}{{[]Result{}, 1, apart - 20*time.Second}, {[]Result{}, 0, 0}, {nil, 1, 0}} {
		synctest.Test(t, func(t *testing.T) {
			r := &runner{o: Options{Recorded: test.recorded, Progress: io.Discard}}
			r.waitForRound(t.Context(), 0)
			time.Sleep(20 * time.Second)
			began := time.Now()
			r.waitForRound(t.Context(), test.round)
			r.waitForRound(t.Context(), test.round)
			if waited := time.Since(began); waited != test.want {
				t.Errorf("round %d began after %v, want %v", test.round, waited, test.want)
			}
			interrupted, cancel := context.WithCancel(t.Context())
			cancel()
			r.waitForRound(interrupted, test.round+1)
			if waited := time.Since(began); waited != test.want {
				t.Error("an interrupted run waits for the next round")
			}
		})
	}
}

func TestDisturbedRowsAreRepeatedExceptMemory(t *testing.T) {
	for unit, again := range map[string]bool{"B": false, "ns": true} {
		c := Case{Rows: []Row{{Name: "c", Layout: "live", Unit: unit, Ours: "ours", Peer: "peer", Figure: "f"}}}
		by := sides{}
		for i := range sureRounds {
			by["ours"] = append(by["ours"], measured{i, Figures{"f": 9}, 2 * tooMuch})
			by["peer"] = append(by["peer"], measured{i, Figures{"f": 1}, 2 * tooMuch})
		}
		if got := c.suspected(by, recordOf([]Result{rounds(unit, Goal{}, 1, 1, 1)}), 1); (len(got) > 0) != again {
			t.Errorf("in %s %v are repeated", unit, got)
		}
	}
}
