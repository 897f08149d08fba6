package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// Improve returns the rows of a record to which rounds were added: each from the run with more undisturbed rounds.
func Improve(recorded, now []Result) []Result {
	before := recordOf(recorded)
	rows := slices.Clone(now)
	for i, r := range rows {
		if was, known := before[r.id()]; known && was.calmRounds() > r.calmRounds() {
			rows[i] = was
		}
	}
	return rows
}

// calmRounds returns how many rounds of a row were undisturbed.
func (r *Result) calmRounds() int {
	if disturbed(r.Stolen) {
		return 0
	}
	return r.Runs
}
