package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// mutant is a bug to be planted.
type mutant struct {
	name  string
	patch string // the path of the patch
	files []string
	// judge is the test that has to catch the bug, and pkg its package.
	pkg, judge string
}

// simulator is the judge of bugs that name no other.
const simulator = "TestSimulation"

// judges names the package and the test in a patch. Without it, the simulator judges.
var judges = regexp.MustCompile(`(?m)^Judge: (\./\S+) (Test\w+)$`)

var target = regexp.MustCompile(`(?m)^\+\+\+ b/(\S+)`)

func readMutants(folder string) ([]mutant, error) {
	patches, err := filepath.Glob(filepath.Join(folder, "*.patch"))
	if err != nil {
		return nil, err
	}
	if len(patches) == 0 {
		return nil, fmt.Errorf("there are no patches in %s; run this in the root of the module", folder)
	}
	var all []mutant
	for _, p := range patches {
		text, err := os.ReadFile(p)
		if err != nil {
			return nil, err
		}
		m := mutant{name: strings.TrimSuffix(filepath.Base(p), ".patch"), pkg: "./informer", judge: simulator}
		if j := judges.FindSubmatch(text); j != nil {
			m.pkg, m.judge = string(j[1]), string(j[2])
		}
		if m.patch, err = filepath.Abs(p); err != nil {
			return nil, err
		}
		for _, f := range target.FindAllSubmatch(text, -1) {
			m.files = append(m.files, string(f[1]))
		}
		if len(m.files) == 0 {
			return nil, fmt.Errorf("%s changes no file; a patch has lines such as +++ b/informer/queue.go", p)
		}
		all = append(all, m)
	}
	return all, nil
}

// verdict is the result for a bug.
type verdict struct {
	caught  bool
	promise string // the broken promise, or the test that fails
	seed    int    // the seed that broke it; 0 if there is none
	took    time.Duration
}

func (v verdict) String() string {
	if !v.caught {
		return fmt.Sprintf("SURVIVED (%s)", v.took.Round(time.Second))
	}
	if v.seed == 0 {
		return fmt.Sprintf("%s (%s)", v.promise, v.took.Round(time.Second))
	}
	return fmt.Sprintf("%s, seed %d (%s)", v.promise, v.seed, v.took.Round(time.Second))
}

var (
	broken  = regexp.MustCompile(`seed (\d+)[:,] (P\d+)?`)
	crashed = regexp.MustCompile(`(?m)^panic: `)
	failed  = regexp.MustCompile(`(?m)^ *--- FAIL: Test`)
)

// try applies the bug and runs its judge until that fails or the seeds are used up.
func (m *mutant) try(work string, seeds int) (verdict, error) {
	overlay, err := m.plant(work)
	if err != nil {
		return verdict{}, err
	}
	began := time.Now()
	if out, err := exec.Command("go", "vet", "-overlay="+overlay, m.pkg).CombinedOutput(); err != nil {
		return verdict{}, fmt.Errorf("the mutant does not compile: %w\n%s", err, out)
	}
	cmd := exec.Command("go", "test", "-overlay="+overlay, "-count=1", "-timeout=10m",
		"-run=^"+m.judge+"$", m.pkg)
	cmd.Env = append(os.Environ(), "SIM_FAILFAST=1", "SIM_ONCE=1", "SIM_SEED=1", "SIM_SEEDS="+strconv.Itoa(seeds))
	out, err := cmd.CombinedOutput()
	v := verdict{took: time.Since(began)}
	if err == nil {
		return v, nil
	}
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
		return v, err
	}
	v.caught = true
	if found := broken.FindSubmatch(out); found != nil {
		if v.promise = string(found[2]); v.promise == "" {
			v.promise = m.judge
		}
		v.seed, err = strconv.Atoi(string(found[1]))
		return v, err
	}
	switch {
	case m.judge != simulator && failed.Match(out):
		v.promise = m.judge
	case crashed.Match(out):
		v.promise = "a panic of the engine"
	default:
		return v, fmt.Errorf("the judge failed without naming a seed and a promise:\n%s", tail(out, 40))
	}
	return v, nil
}

// plant applies the patch to copies of the files and returns the overlay that replaces them.
func (m *mutant) plant(work string) (overlay string, err error) {
	replace := map[string]string{}
	for _, f := range m.files {
		text, err := os.ReadFile(f)
		if err != nil {
			return "", fmt.Errorf("%w; run this in the root of the module", err)
		}
		to := filepath.Join(work, f)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return "", err
		}
		from, err := filepath.Abs(f)
		if err != nil {
			return "", err
		}
		replace[from] = to
	}
	apply := exec.Command("git", "apply", m.patch)
	apply.Dir = work
	// Outside a repository, git resolves the paths from the current folder.
	apply.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(work))
	if out, err := apply.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the patch does not apply; regenerate it for the current code: %w\n%s", err, out)
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(work, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o644)
}

// tail returns the last lines of a text.
func tail(text []byte, n int) string {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-n):], []byte("\n")))
}
