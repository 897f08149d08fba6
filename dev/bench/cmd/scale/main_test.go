package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Every column has a figure, for each number of clusters.
func TestScaleMeasuresEachNumberOfClusters(t *testing.T) {
	var out bytes.Buffer
	args := strings.Fields("-clusters 1,3 -resources 20 -with-pods 2 -pods 20 -rest 100ms -reads 5 -timeout 1m")
	if err := scale(t.Context(), args, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[1], "1 ") || !strings.HasPrefix(lines[2], "3 ") {
		t.Fatalf("the table is\n%s", &out)
	}
	for _, line := range lines[1:] {
		for _, unit := range []string{"s ", "MiB", "%", "ms", "MB"} {
			if !strings.Contains(line, unit) {
				t.Errorf("there is no figure in %s in %q", unit, line)
			}
		}
	}
}

func TestScaleRefusesWhatIsNotANumber(t *testing.T) {
	if err := scale(t.Context(), []string{"-clusters", "ten"}, io.Discard, io.Discard); err == nil {
		t.Error("no error")
	}
}
