package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var any1 = regexp.MustCompile("")

func TestTheModulesOwnTargetsAreFound(t *testing.T) {
	targets, err := findTargets("../..", any1)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []target{
		{"./source/kube", "FuzzWatchJSON"}, {"./store", "FuzzP15_LayoutsReadTheSame"},
		{"./object", "FuzzKeySplitUndoesJoin"},
		{"./informertest", "FuzzSelection"}, {"./store/internal/pack", "FuzzApplyStaysWithin"},
	} {
		if !slices.Contains(targets, want) {
			t.Errorf("%v is missing in %v", want, targets)
		}
	}
	for _, tt := range targets {
		if strings.HasPrefix(tt.pkg, "./dev/bench") || strings.Contains(tt.pkg, "testdata") {
			t.Errorf("%v belongs to another module", tt)
		}
	}
	if _, err := findTargets("../..", regexp.MustCompile("^FuzzNobodyWroteThis$")); err == nil {
		t.Error("no error although no target matches")
	}
}

// module has a target that fails soon, one that does not, and functions that only look like targets.
var module = map[string]string{
	"go.mod": "module example.test/m\n\ngo 1.26\n",
	"a/a_test.go": `package a
import "testing"
func FuzzFails(f *testing.F) {
	f.Add([]byte("a"))
	f.Fuzz(func(t *testing.T, b []byte) { if len(b) > 2 { t.Fatal("three bytes") } })
}
func FuzzHolds(f *testing.F) { f.Add([]byte("a")); f.Fuzz(func(t *testing.T, b []byte) {}) }
type helper struct{}
func (helper) FuzzHelper(f *testing.F) {}
`,
	"a/testdata/x_test.go": "package x\nfunc FuzzNot(f *testing.F) {}\n",
	"other/go.mod":         "module example.test/other\n",
	"other/x_test.go":      "package x\nimport \"testing\"\nfunc FuzzOther(f *testing.F) {}\n",
}

func TestAFailureIsReportedWithItsInput(t *testing.T) {
	root := t.TempDir()
	for name, text := range module {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	targets, err := findTargets(root, any1)
	if err != nil {
		t.Fatal(err)
	}
	if want := []target{{"./a", "FuzzFails"}, {"./a", "FuzzHolds"}}; !slices.Equal(targets, want) {
		t.Fatalf("found %v, want %v", targets, want)
	}
	t.Setenv("GOFLAGS", "") // do not inherit the caller's flags
	var said strings.Builder
	s := settings{root: root, lasts: time.Second, parallel: 1, out: &said}
	if err := s.runAll(t.Context(), targets); err == nil || !strings.Contains(err.Error(), "FuzzFails") ||
		strings.Contains(err.Error(), "FuzzHolds") {
		t.Errorf("%v, with the output\n%s", err, &said)
	}
	input := regexp.MustCompile(`the input is in (a/testdata/fuzz/FuzzFails/\w+)`).FindStringSubmatch(said.String())
	if input == nil {
		t.Fatalf("the output does not name the input:\n%s", &said)
	}
	if _, err := os.Stat(filepath.Join(root, input[1])); err != nil {
		t.Error(err)
	}
	if !strings.Contains(said.String(), "three bytes") || !strings.Contains(said.String(), "nothing found") {
		t.Errorf("it said\n%s", &said)
	}
}

func TestATargetThatCannotRunIsAnError(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "go.mod"), []byte(module["go.mod"]), 0o644); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	s := settings{root: root, lasts: time.Second, parallel: 1, out: &said}
	o := s.run(t.Context(), target{"./none", "FuzzNone"})
	if o.err == nil || len(o.finding) > 0 || !strings.Contains(o.err.Error(), "none") {
		t.Errorf("a package that does not exist: %v, %q", o.err, o.finding)
	}
	for _, minutes := range []float64{0, -1, 1e9} {
		if err := fuzz(t.Context(), minutes, "", 1); err == nil {
			t.Errorf("%v minutes were accepted", minutes)
		}
	}
	if fuzz(t.Context(), 1, "(", 1) == nil || fuzz(t.Context(), 1, "", 0) == nil {
		t.Error("invalid settings were accepted")
	}
}
