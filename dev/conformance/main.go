package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	race := flag.Bool("race", false, "run the tests with the race detector")
	only := flag.String("run", "", "run only the tests whose names match")
	flag.Parse()
	ok, err := conform(*race, *only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// conform runs all suites and reports whether the results are as known.go says.
func conform(race bool, only string) (bool, error) {
	filter, err := regexp.Compile(only)
	if err != nil {
		return false, fmt.Errorf("reading -run: %w", err)
	}
	work, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(work)
	env, err := newEnvironment(work)
	if err != nil {
		return false, err
	}
	var passed, failed int
	fine := true
	for _, s := range suites {
		fmt.Printf("== %s/%s in %s\n", theirs, s.from, s.into)
		p, err := prepare(env, s)
		if err != nil {
			return false, fmt.Errorf("preparing the tests of %s: %w", s.from, err)
		}
		p.tests = slices.DeleteFunc(p.tests, func(name string) bool { return !filter.MatchString(name) })
		results, err := p.run(race)
		if err != nil {
			return false, fmt.Errorf("running the tests of %s: %w", s.from, err)
		}
		n, m, complaints := s.judge(results)
		passed, failed = passed+n, failed+m
		if only == "" && n < s.atLeast {
			complaints = append(complaints, fmt.Sprintf("%d tests passed; at least %d must", n, s.atLeast))
		}
		p.printLeftOut()
		for _, c := range complaints {
			fine = false
			fmt.Println("!! " + c)
		}
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	return fine, nil
}

// judge counts results and returns how they differ from known.go.
func (s suite) judge(results map[string]string) (passed, failed int, complaints []string) {
	for _, name := range sortedKeys(results) {
		reason, listed := s.fail[name]
		switch result := results[name]; {
		case result == "pass":
			passed++
			if listed {
				complaints = append(complaints, fmt.Sprintf("%s passes but is listed in known.go: %s", name, reason))
			}
		case listed:
			failed++
			fmt.Printf("known failure: %s: %s\n", name, reason)
		default:
			failed++
			complaints = append(complaints, fmt.Sprintf("%s: %s, and is not listed in known.go", name, result))
		}
	}
	return passed, failed, complaints
}

// environment is how the go command runs: in the module's folder, with a copy of go.mod that may be extended, because
// client-go's tests use modules that ours do not.
type environment struct {
	root, work, clientGo string
	flags                []string
}

func newEnvironment(work string) (*environment, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return nil, fmt.Errorf("finding this module: %w", err)
	}
	e := &environment{root: strings.TrimSpace(string(out)), work: work}
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(e.root, name))
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(work, name), data, 0o644); err != nil {
			return nil, err
		}
	}
	e.flags = []string{"-mod=mod", "-modfile=" + filepath.Join(work, "go.mod")}
	// The module is downloaded and not only listed, because a new module cache does not have it yet.
	out, err = exec.Command("go", "mod", "download", "-json", theirs).Output()
	if err != nil {
		return nil, fmt.Errorf("downloading %s: %w: %s", theirs, err, out)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return nil, fmt.Errorf("reading what go mod download prints: %w", err)
	}
	e.clientGo = module.Dir
	return e, nil
}

// goCommand runs the go command and returns its output.
func (e *environment) goCommand(verb string, args ...string) ([]byte, error) {
	cmd := e.command(verb, args...)
	out, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); ok {
		return out, fmt.Errorf("go %s: %w: %s", verb, err, exit.Stderr)
	}
	return out, err
}

func (e *environment) command(verb string, args ...string) *exec.Cmd {
	cmd := exec.Command("go", append(append([]string{verb}, e.flags...), args...)...)
	cmd.Dir = e.root
	return cmd
}
