package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/mirador-k8s/mirador/dev/bench/cases"
	"github.com/mirador-k8s/mirador/dev/bench/harness"
)

// The harness starts this program again for each trial; here the program is the test binary.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == harness.ChildArgument {
		if err := harness.Child(context.Background(), cases.All(), os.Stdin, os.Stdout); err != nil {
			_, _ = io.WriteString(os.Stderr, err.Error())
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func TestQuickRunRecordsRowsPageAndPlots(t *testing.T) {
	dir := t.TempDir()
	var out, progress bytes.Buffer
	if err := bench(t.Context(), []string{"-quick", "-out", dir, "-only", "^(heap|store-get|growth)$"}, &out,
		&progress); err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	data, err := os.ReadFile(filepath.Join(dir, harness.File))
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]any
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) < 20 {
		t.Errorf("%d rows were recorded", len(rows))
	}
	for _, r := range rows {
		for _, field := range []string{"case", "unit", "ours", "peer", "ratio", "goal", "met", "spread"} {
			if _, ok := r[field]; !ok {
				t.Errorf("row %v has no %s", r["case"], field)
			}
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"heap per pod", "| packed |", "(ratios.svg)", "How costs grow",
		"(growth-get-by-key.svg)"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	for _, plot := range []string{"ratios.svg", "growth-get-by-key.svg"} {
		if svg, err := os.ReadFile(filepath.Join(dir, plot)); err != nil || !bytes.Contains(svg, []byte("</svg>")) {
			t.Errorf("%s is not a plot: %v", plot, err)
		}
	}
	for _, want := range []string{"CASE", "heap per pod", "client-go, repetition 1", "elapsed"} {
		if !strings.Contains(out.String()+progress.String(), want) {
			t.Errorf("the output does not have %q", want)
		}
	}
	aRunAddsToTheRecord(t, dir)
	checkFindsWhatGotWorse(t, dir, rows)
}

// aRunAddsToTheRecord adds a round of one case, and checks that the first round of each case is still recorded.
func aRunAddsToTheRecord(t *testing.T, dir string) {
	t.Helper()
	before := trialsIn(t, dir)
	err := bench(t.Context(), []string{"-quick", "-add", "-out", dir, "-only", "^store-get$"}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "rows have not been measured yet") {
		t.Errorf("adding to an incomplete table returned %v", err)
	}
	after := trialsIn(t, dir)
	for trial, n := range before {
		want := n
		if strings.HasPrefix(trial, "store-get ") {
			want++
		}
		if after[trial] != want {
			t.Errorf("%s was recorded %d times and then %d", trial, n, after[trial])
		}
	}
}

// trialsIn counts the recorded trials by case and variant.
func trialsIn(t *testing.T, dir string) map[string]int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, harness.TrialsFile))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for l := range strings.Lines(string(data)) {
		var trial struct{ Case, Variant string }
		if err := json.Unmarshal([]byte(l), &trial); err != nil {
			t.Fatal(err)
		}
		counts[trial.Case+" "+trial.Variant]++
	}
	return counts
}

// checkFindsWhatGotWorse records better figures than were measured and checks that -check reports the difference.
func checkFindsWhatGotWorse(t *testing.T, dir string, rows []map[string]any) {
	t.Helper()
	for _, r := range rows {
		if ratio, ok := r["ratio"].(float64); ok {
			r["ratio"] = ratio / 100
		}
	}
	data, err := json.Marshal(rows)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, harness.File), data, 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = bench(t.Context(), []string{"-quick", "-check", "-out", dir, "-only", "^heap$"}, &out, io.Discard)
	if err == nil || !strings.Contains(out.String(), "not sure: heap per pod, decoded here (live)") {
		t.Errorf("a check against figures a hundred times better returned %v and printed:\n%s", err, &out)
	}
}

func TestBadFlagsAreErrors(t *testing.T) {
	for _, args := range [][]string{{"-only", "no such case"}, {"-only", "("}, {"extra"}, {"-quick", "-check"},
		{"-quick", "-add"}, {"-add", "-check"}, {"-check", "-out", "no/such/folder"}} {
		if err := bench(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("bench %v did not fail", args)
		}
	}
}

func TestAnInterruptedRunRecordsNothing(t *testing.T) {
	dir := t.TempDir()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	err := bench(ctx, []string{"-quick", "-out", dir, "-only", "^(heap|store-get)$"}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "nothing is recorded") {
		t.Errorf("an interrupted run returned %v", err)
	}
	if made, _ := filepath.Glob(filepath.Join(dir, "*")); len(made) > 0 {
		t.Errorf("an interrupted run left %v", made)
	}
}
