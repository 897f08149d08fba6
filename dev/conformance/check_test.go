package main

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const underTest = `package p

type Thing struct{ size int }

func New() *Thing { return &Thing{} }
`

const theirTests = `package p

import (
	"strings"
	"testing"
)

func TestBlackBox(t *testing.T) {
	if New() == nil {
		t.Error("nil")
	}
}

var _, helper = 1, func(t *Thing) int { return t.inside }

func TestWhiteBox(t *testing.T) {
	if helper(New()) != 0 {
		t.Error(strings.ToUpper("no"))
	}
}

func (t *Thing) onlyForTests() int { return t.size }

func TestMethodOfTheirOwn(t *testing.T) { New().onlyForTests() }

func TestMain(m *testing.M) { m.Run() }
`

func settled(t *testing.T, under, tests string) (*checker, *testFile) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "p.go", under, 0)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "p_test.go"), []byte(tests), 0o644); err != nil {
		t.Fatal(err)
	}
	files, err := parseTests(set, folder, suite{})
	if err != nil {
		t.Fatal(err)
	}
	c := &checker{set: set, path: "p", under: []*ast.File{file}, tests: files,
		importer: importer.ForCompiler(set, "source", nil), dropped: map[string]string{}}
	if err := c.settle(); err != nil {
		t.Fatal(err)
	}
	return c, files[0]
}

func TestWhiteBoxTestsAreRemovedWithAReason(t *testing.T) {
	c, file := settled(t, underTest, theirTests)
	if got := c.remaining(); !slices.Equal(got, []string{"TestBlackBox", "TestMethodOfTheirOwn"}) {
		t.Errorf("remaining tests: %v", got)
	}
	if why := c.reasons(); len(why) != 1 || !strings.Contains(why["TestWhiteBox"], "inside") {
		t.Errorf("reasons: %v", why)
	}
	out := string(file.source())
	if strings.Contains(out, `"strings"`) || strings.Contains(out, "TestWhiteBox") {
		t.Errorf("a removed declaration is still in the file:\n%s", out)
	}
	if strings.Count(out, "\n") != strings.Count(theirTests, "\n") {
		t.Error("line numbers have changed")
	}
	if _, err := parser.ParseFile(token.NewFileSet(), "p_test.go", out, 0); err != nil {
		t.Errorf("what is left does not parse: %v", err)
	}
}

func TestErrorsInOurPackageAreReported(t *testing.T) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "p.go", "package p\n\nvar x int = \"\"\n", 0)
	if err != nil {
		t.Fatal(err)
	}
	c := &checker{set: set, path: "p", under: []*ast.File{file}, dropped: map[string]string{}}
	if err := c.settle(); err == nil {
		t.Error("a package that does not compile was accepted")
	}
}

func TestResultsAreComparedWithTheList(t *testing.T) {
	s := suite{fail: map[string]string{"TestKnown": "because", "TestCured": "because"}}
	passed, failed, complaints := s.judge(map[string]string{
		"TestFine": "pass", "TestCured": "pass", "TestKnown": "fail", "TestNew": "fail", "TestHangs": "did not finish"})
	if passed != 2 || failed != 3 {
		t.Errorf("%d passed, %d failed", passed, failed)
	}
	if len(complaints) != 3 || !strings.HasPrefix(complaints[0], "TestCured passes") ||
		!strings.HasPrefix(complaints[1], "TestHangs") || !strings.HasPrefix(complaints[2], "TestNew") {
		t.Errorf("complaints: %q", complaints)
	}
}

func TestFailedTestsAreRunAgain(t *testing.T) {
	s := suite{fail: map[string]string{"TestKnown": "because"},
		timed: map[string]string{"TestTimed": "a little", "TestTooLong": "a little"}}
	results := map[string]string{"TestFine": "pass", "TestKnown": "fail", "TestBroken": "fail", "TestTimed": "fail",
		"TestTooLong": "fail"}
	runs := map[string]int{}
	err := s.again(results, func(name string) error {
		if runs[name]++; name == "TestTimed" && runs[name] == 3 {
			results[name] = "pass"
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]int{"TestBroken": 1, "TestTimed": 3, "TestTooLong": repeats}; !maps.Equal(runs, want) {
		t.Errorf("runs: %v, want %v", runs, want)
	}
}
