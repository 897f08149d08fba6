package main

import (
	"path/filepath"
	"testing"
)

// A patch that does not apply plants no bug. Running the simulator on all of them takes long, but applying them does
// not.
func TestEveryPatchApplies(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	all, err := readMutants(filepath.Join("informer", "testdata", "mutants"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if _, err := m.plant(filepath.Join(t.TempDir(), m.name)); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}
