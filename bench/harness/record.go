package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// File is the name of the recorded results inside their folder.
const File = "results.json"

// Save writes the rows and the page with its plots into a folder.
func Save(dir string, rows []Result, m Machine) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder for the results: %w", err)
	}
	data, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return fmt.Errorf("write the results as JSON: %w", err)
	}
	files := map[string][]byte{
		File:         append(data, '\n'),
		"README.md":  []byte(page(rows, m)),
		"ratios.svg": []byte(ratioPlot(rows)),
	}
	for _, p := range growthPlots(rows) {
		files[p.file] = []byte(p.svg)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return fmt.Errorf("write the results: %w", err)
		}
	}
	return nil
}

// Load reads recorded rows.
func Load(dir string) ([]Result, error) {
	data, err := os.ReadFile(filepath.Join(dir, File))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("there are no recorded results to compare with: run without -check first: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("read the recorded results: %w", err)
	}
	var rows []Result
	if err := json.Unmarshal(data, &rows); err != nil {
		return nil, fmt.Errorf("read the recorded results in %s: %w", dir, err)
	}
	return rows, nil
}

// moreIsBetter reports whether a larger ratio is the better one: by its goal, or because it is a rate.
func (r *Result) moreIsBetter() bool {
	return r.GoalOf == RatioAbove || strings.HasSuffix(r.Unit, "/s")
}

// leastNoise is the change that is taken for noise however close the repetitions were.
const leastNoise = 0.15

// Compare says which rows are worse than recorded by more than the noise, which is
// what the ratios of the rounds or the repetitions of both sides spread, then and now, and twice what others took of the processors. Rows that were not
// measured now, or not recorded, are not compared.
func Compare(recorded, now []Result) (worse []string) {
	type id struct {
		name, layout string
		n            int
	}
	old := map[id]Result{}
	for _, r := range recorded {
		old[id{r.Case, r.Layout, r.Objects}] = r
	}
	for _, r := range now {
		was, known := old[id{r.Case, r.Layout, r.Objects}]
		if !known || r.Unit != was.Unit {
			continue
		}
		value, before, what := r.Ours, was.Ours, "it"
		switch {
		case r.Ratio != nil && was.Ratio != nil:
			value, before, what = *r.Ratio, *was.Ratio, "the ratio"
		case r.GoalOf != OursAtMost:
			continue
		}
		noise := max(leastNoise, was.Spread.noise(), r.Spread.noise(), 2*was.Stolen, 2*r.Stolen)
		bad := value > before*(1+noise)
		if r.Unit == Exponent {
			bad = value > before+noise
		}
		if r.moreIsBetter() {
			bad = value < before/(1+noise)
		}
		if bad {
			worse = append(worse, fmt.Sprintf("%s (%s): %s is %s, recorded %s, noise %s",
				r.Title(), r.Layout, what, Number(value), Number(before), percent(noise)))
		}
	}
	return worse
}
