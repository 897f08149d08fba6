package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// event is a line of "go test -json".
type event struct {
	Action, Test, Output string
	Elapsed              float64
}

// run runs the tests, those that need client-go's switch separately, and returns the result of each: "pass", "fail" or
// "did not finish".
func (p *prepared) run(race bool) (map[string]string, error) {
	results := map[string]string{}
	plain, streaming := []string{}, []string{}
	for _, name := range p.tests {
		results[name] = "did not finish"
		if slices.Contains(p.streaming, name) {
			streaming = append(streaming, name)
		} else {
			plain = append(plain, name)
		}
	}
	if err := p.goTest(race, plain, results); err != nil {
		return nil, err
	}
	if err := p.goTest(race, streaming, results, watchListSwitch); err != nil {
		return nil, err
	}
	return results, p.again(results, func(name string) error {
		var env []string
		if slices.Contains(p.streaming, name) {
			env = []string{watchListSwitch}
		}
		return p.goTest(race, []string{name}, results, env...)
	})
}

// again runs tests that failed unexpectedly once more, each alone, because a busy machine can make them fail. A timed
// test is run until it passes, a bounded number of times: if our code waited too long, it would fail every time.
func (s suite) again(results map[string]string, run func(name string) error) error {
	for _, name := range sortedKeys(results) {
		if _, listed := s.fail[name]; listed {
			continue
		}
		tries := 1
		if _, timed := s.timed[name]; timed {
			tries = repeats
		}
		for i := 0; i < tries && results[name] != "pass"; i++ {
			fmt.Printf("   again, %d of at most %d: %s\n", i+1, tries, name)
			if err := run(name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *prepared) goTest(race bool, names []string, results map[string]string, env ...string) error {
	if len(names) == 0 {
		return nil
	}
	fmt.Printf("   building and running %d tests %s\n", len(names), strings.Join(env, " "))
	args := []string{"-overlay=" + p.overlay, "-json", "-count=1", "-vet=off", "-timeout=" + limit.String(),
		"-run=^(" + strings.Join(names, "|") + ")$"}
	if race {
		args = append(args, "-race")
	}
	cmd := p.env.command("test", append(args, "./"+p.into)...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	said, loose := map[string][]string{}, []string{}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			loose = append(loose, lines.Text()+"\n")
			continue
		}
		top, _, _ := strings.Cut(e.Test, "/")
		switch {
		case e.Action == "output" && top == "", e.Action == "build-output":
			loose = append(loose, e.Output)
		case e.Action == "output":
			said[top] = append(said[top], e.Output)
		case e.Test == top && top != "" && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip"):
			results[top] = e.Action
			fmt.Printf("%-5s %s (%.2fs)\n", e.Action, top, e.Elapsed)
			if e.Action != "pass" {
				tail(said[top])
			}
			delete(said, top)
		}
	}
	if err := lines.Err(); err != nil {
		return errors.Join(err, cmd.Wait())
	}
	err = cmd.Wait()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return err
	}
	return p.loose(err, names, results, said, loose)
}

// loose prints output that belongs to no single test: a failed build, a test that never ended, leaked goroutines.
func (p *prepared) loose(exit error, names []string, results map[string]string, said map[string][]string,
	lines []string) error {
	if exit == nil {
		return nil
	}
	bad := false
	for _, name := range names {
		bad = bad || results[name] != "pass"
	}
	for _, name := range sortedKeys(said) {
		fmt.Println("unfinished:", name)
		tail(said[name])
	}
	tail(lines)
	if !bad {
		return fmt.Errorf("every test passed, but go test failed: %w", exit)
	}
	return nil
}

// tail prints the last lines.
func tail(lines []string) {
	const most = 60
	if len(lines) > most {
		fmt.Printf("      … %d lines\n", len(lines)-most)
		lines = lines[len(lines)-most:]
	}
	for _, l := range lines {
		fmt.Print("      ", l)
	}
}
