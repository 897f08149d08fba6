package harness

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestTrialsAreReadAsTheyWereWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	empty, err := LoadTrials(dir)
	if err != nil || len(empty) > 0 || empty.nextRound() != 0 {
		t.Fatalf("where nothing was recorded there is %v, %v", empty, err)
	}
	all := Trials{}
	all.add("c", "ours", measured{0, Figures{"f": 1, "g": 2}, 0.25})
	all.add("c", "ours", measured{4, Figures{"f": 3}, 0})
	all.add("d", "peer", measured{1, Figures{}, 0})
	if err := all.Save(dir); err != nil {
		t.Fatal(err)
	}
	read, err := LoadTrials(dir)
	if err != nil || !reflect.DeepEqual(read, all) {
		t.Errorf("read %v, %v; written was %v", read, err, all)
	}
	if next := read.nextRound(); next != 5 {
		t.Errorf("the next round is %d", next)
	}
	file := filepath.Join(dir, TrialsFile)
	if err := os.WriteFile(file, []byte("{}\nno trial\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadTrials(dir); err == nil || !strings.Contains(err.Error(), "line 2 of "+file) {
		t.Errorf("an invalid file returned %v", err)
	}
}

func TestRoundsOfARunFollowThoseOfEarlierRuns(t *testing.T) {
	before := Trials{}
	before.add("c", "ours", measured{round: 2})
	got := plan([]Case{{Name: "c", Repeat: 1, Variants: []Variant{{Name: "ours"}}}},
		Options{Trials: before, Add: true, Repeat: 2})
	if len(got) != 2 || got[0].round != 3 || got[1].round != 4 {
		t.Errorf("the plan is %v", got)
	}
}

func TestARecordKeepsRowsWithMoreUndisturbedRounds(t *testing.T) {
	row := func(name string, runs int, stolen float64) Result {
		return Result{Case: name, Runs: runs, Stolen: stolen}
	}
	const much = 2 * calmShare
	got := Improve(
		[]Result{row("calm then", 1, 0), row("calm both times", 1, 0), row("more then", 3, 0), row("calm now", 3, much),
			row("never", 2, much), row("gone", 1, 0)},
		[]Result{row("calm then", 2, much), row("calm both times", 1, 0.01), row("more then", 2, 0), row("calm now", 1, 0),
			row("never", 1, much), row("new", 2, much)})
	want := []Result{row("calm then", 1, 0), row("calm both times", 1, 0.01), row("more then", 3, 0),
		row("calm now", 1, 0), row("never", 1, much), row("new", 2, much)}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the record has %+v", got)
	}
}
