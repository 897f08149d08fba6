package harness

import (
	"io"
	"testing"
	"testing/synctest"
	"time"
)

func TestStolenIsTheShareOfTheRequestedTime(t *testing.T) {
	before := parseTicks("cpu  100 10 20 5000 30 1 2 7 0 0")
	for line, want := range map[string]float64{
		"cpu  100 10 20 6000 99 1 2 7 0 0":    0, // idle, and waiting for a disk
		"cpu  160 15 50 6000 30 3 5 7 0 0":    0,
		"cpu  160 15 50 6000 30 3 5 107 50 0": 0.5, // time of guests is part of the user's
		"cpu  100 10 20 5000 30 1 2 8":        1,
		"cpu  160 15 50 6000 30 3 5":          0, // a kernel that does not count it
		"":                                    0,
	} {
		if got := parseTicks(line).stolenSince(before); got != want {
			t.Errorf("%q: %v were stolen, want %v", line, got, want)
		}
	}
}

func TestDisturbedTrialsCountOnlyIfThereAreNoOthers(t *testing.T) {
	by := sides{}
	add := func(value, stolen float64) {
		by["v"] = append(by["v"], measured{figures: Figures{"ns": value}, stolen: stolen})
	}
	add(900, 0.5)
	add(700, 0.3)
	if s, ok := by.sample("v", "ns"); !ok || s.Median != 800 || s.Runs != 2 || s.Stolen != 0.5 {
		t.Errorf("with nothing else: %+v", s)
	}
	add(200, tooMuch)
	if s, ok := by.sample("v", "ns"); !ok || s.Median != 200 || s.Runs != 1 || s.Stolen != tooMuch {
		t.Errorf("next to a slightly disturbed one: %+v", s)
	}
	add(100, calmShare)
	add(120, 0)
	if s, ok := by.sample("v", "ns"); !ok || s.Median != 110 || s.Runs != 2 || s.Stolen != calmShare {
		t.Errorf("next to undisturbed ones: %+v", s)
	}
	if _, ok := by.sample("v", "bytes"); ok {
		t.Error("a figure that was not measured has a sample")
	}
}

func TestARatioUsesRoundsInWhichBothSidesWereUndisturbed(t *testing.T) {
	row := Row{Name: "row", Unit: "ns", Ours: "ours", Peer: "peer", Figure: "ns", Goal: Ratio(0.5)}
	trial := func(round int, value, stolen float64) measured {
		return measured{round, Figures{"ns": value}, stolen}
	}
	by := sides{
		"ours": {trial(0, 10, 0), trial(1, 30, 0), trial(2, 20, 0.1), trial(3, 50, 0)},
		"peer": {trial(0, 90, 0.9), trial(1, 100, 0.2), trial(2, 100, 0)},
	}
	res, _ := row.result(by)
	if res.Runs != 2 || res.Ratio == nil || *res.Ratio != 0.25 || res.Ours != 25 ||
		*res.Peer != 100 || res.Stolen != 0.2 {
		t.Errorf("no undisturbed round, two slightly disturbed: %+v", res)
	}
	by["peer"] = append(by["peer"], trial(3, 200, 0))
	res, _ = row.result(by)
	if res.Runs != 1 || res.Ratio == nil || *res.Ratio != 0.25 || res.Ours != 50 || *res.Peer != 200 || res.Stolen != 0 {
		t.Errorf("one undisturbed round: %+v", res)
	}
	delete(by, "peer")
	if res, ok := row.result(by); !ok || res.Ratio != nil || res.Peer != nil || res.Met != nil || res.Runs != 3 {
		t.Errorf("without the other side: %+v", res)
	}
}

func TestARunWaitsForCalmAsLongAsItsPatienceLasts(t *testing.T) {
	for _, test := range []struct {
		name   string
		shares []float64 // one after the other, the last one forever
		want   time.Duration
	}{
		{"undisturbed", []float64{0}, 0},
		{"a little", []float64{tooMuch}, 0},
		{"a burst", []float64{0.9, 0.9, 0.1}, 10 * time.Second},
		{"for ever", []float64{0.9}, time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := &runner{o: Options{Patience: time.Minute, Progress: io.Discard}, stolen: func() float64 {
				share := test.shares[0]
				if len(test.shares) > 1 {
					test.shares = test.shares[1:]
				}
				return share
			}}
			began := time.Now()
			for range 3 { // trials, which share the patience
				r.waitForCalm(t.Context())
			}
			if got := time.Since(began); got != test.want {
				t.Errorf("%s: it waited %v, want %v", test.name, got, test.want)
			}
		})
	}
}

func TestOnlyTimedVariantsWaitForCalm(t *testing.T) {
	c := Case{Rows: []Row{
		{Unit: "B", Ours: "heap", Peer: "peer"}, {Unit: "MiB", Ours: "heap"}, {Unit: "ns", Ours: "get", Peer: "peer"},
		{Ours: "curve", Growth: []int{10}},
	}}
	for variant, want := range map[string]bool{"heap": false, "peer": true, "get": true, At("curve", 10): true} {
		if c.isTimed(variant) != want {
			t.Errorf("%s: timed is %v", variant, !want)
		}
	}
}
