package harness

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Trials are the measurements by case, from which the rows are made. A record keeps them, so that it can be made in
// several runs: some machines are rarely undisturbed for hours, and rounds of one hour vary less than those of two.
type Trials map[string]sides

func (t Trials) add(c, v string, m measured) {
	if t[c] == nil {
		t[c] = sides{}
	}
	t[c][v] = append(t[c][v], m)
}

// nextRound returns the first round without measurements.
func (t Trials) nextRound() int {
	next := 0
	for _, by := range t {
		for _, all := range by {
			for _, m := range all {
				next = max(next, m.round+1)
			}
		}
	}
	return next
}

// TrialsFile is the name of the recorded trials inside the folder of the results.
const TrialsFile = "trials.jsonl"

// entry is one trial as stored in the file.
type entry struct {
	Case    string  `json:"case"`
	Variant string  `json:"variant"`
	Round   int     `json:"round"`
	Stolen  float64 `json:"stolen"`
	Figures Figures `json:"figures"`
}

// Save writes the trials into a folder, one per line.
func (t Trials) Save(dir string) error {
	var data bytes.Buffer
	lines := json.NewEncoder(&data)
	for _, c := range slices.Sorted(maps.Keys(t)) {
		for _, v := range slices.Sorted(maps.Keys(t[c])) {
			for _, m := range t[c][v] {
				if err := lines.Encode(entry{c, v, m.round, m.stolen, m.figures}); err != nil {
					return fmt.Errorf("write the trial %s %s as JSON: %w", c, v, err)
				}
			}
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder for the results: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, TrialsFile), data.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the trials: %w", err)
	}
	return nil
}

// LoadTrials reads recorded trials; it returns none if nothing was recorded yet.
func LoadTrials(dir string) (Trials, error) {
	t := Trials{}
	file, err := os.Open(filepath.Join(dir, TrialsFile))
	if errors.Is(err, os.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the recorded trials: %w", err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		var l entry
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("read the recorded trials, line %d of %s: %w", n, file.Name(), err)
		}
		t.add(l.Case, l.Variant, measured{l.Round, l.Figures, l.Stolen})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the recorded trials: %w", err)
	}
	return t, nil
}
