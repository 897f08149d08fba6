package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// settings apply to every target.
type settings struct {
	root     string
	lasts    time.Duration
	parallel int
	out      io.Writer
}

// outcome is the result of a target.
type outcome struct {
	target
	took        time.Duration
	execs       int
	interesting int      // new inputs of this run that increased coverage
	finding     []string // the output of the failed target
	input       string   // the path of the failing input
	err         error    // the target could not be run
}

// A target that does not end within grace of its time hangs. The package is compiled for fuzzing before that time
// starts, which takes minutes the first time.
const (
	grace   = 2 * time.Minute
	compile = 30 * time.Minute
)

// run runs one target to its end.
func (s settings) run(ctx context.Context, t target) outcome {
	began := time.Now()
	o := outcome{target: t}
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	patience := time.AfterFunc(compile, cancel)
	defer patience.Stop()
	// By default every input that increases coverage is minimised for a minute, during which nothing new is tried; inputs
	// as large as pods would take all the time.
	cmd := exec.CommandContext(bounded, "go", "test", "-run=^$", "-fuzz=^"+t.name+"$",
		"-fuzztime="+s.lasts.String(), "-fuzzminimizetime=1s", "-parallel="+strconv.Itoa(s.parallel), t.pkg)
	cmd.Dir = s.root
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // so that the go command ends its workers
	cmd.WaitDelay = 10 * time.Second
	read, write := io.Pipe()
	cmd.Stdout, cmd.Stderr = write, write
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.follow(&o, read, func() { patience.Reset(s.lasts + grace) })
	}()
	err := cmd.Run()
	write.Close()
	<-done
	o.took = time.Since(began)
	switch {
	case ctx.Err() != nil:
		o.err = ctx.Err()
	case bounded.Err() != nil:
		o.err = fmt.Errorf("the target did not end within %s after its time: an input hangs", grace)
	case err != nil && !slices.ContainsFunc(o.finding, isFailure):
		o.err = fmt.Errorf("%w: %s", err, strings.Join(o.finding, "\n"))
	case err != nil:
		return o
	}
	o.finding = nil
	return o
}

// isFailure reports whether a line says that the target failed, and not that it could not be compiled.
func isFailure(line string) bool { return strings.HasPrefix(line, "--- FAIL: ") }

var (
	progressLine = regexp.MustCompile(`^fuzz: elapsed: (\S+), execs: (\d+) \((\d+)/sec\)(?:, new interesting: (\d+))?`)
	inputLine    = regexp.MustCompile(`Failing input written to (\S+)`)
)

// follow reads the output of the go command and prints its progress twice a minute; begun is called when the target
// starts.
func (s settings) follow(o *outcome, r io.Reader, begun func()) {
	var said time.Time
	compiling := true
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if compiling && strings.HasPrefix(line, "fuzz: ") {
			compiling = false
			begun()
		}
		m := progressLine.FindStringSubmatch(line)
		switch {
		case m != nil:
			o.execs, _ = strconv.Atoi(m[2])
			o.interesting, _ = strconv.Atoi(m[4])
			if time.Since(said) > 30*time.Second {
				said = time.Now()
				fmt.Fprintf(s.out, "   %s: %s of %s, %d executions, %s/s, %d new inputs\n", o.name, m[1], s.lasts, o.execs,
					m[3], o.interesting)
			}
		case strings.HasPrefix(line, "fuzz: "), line == "PASS", strings.HasPrefix(line, "ok "):
		default:
			if m := inputLine.FindStringSubmatch(line); m != nil {
				o.input = filepath.ToSlash(filepath.Join(o.pkg, m[1]))
			}
			if len(o.finding) < 40 {
				o.finding = append(o.finding, line)
			}
		}
	}
	if err := lines.Err(); err != nil {
		o.finding = append(o.finding, fmt.Sprintf("(the rest of its output cannot be read: %v)", err))
	}
	_, _ = io.Copy(io.Discard, r) // so that the writer is not blocked
}

// runAll runs the targets one after the other and prints their results.
func (s settings) runAll(ctx context.Context, targets []target) error {
	fmt.Fprintf(s.out, "%d targets, %s each, %d at a time: %s\n", len(targets), s.lasts, s.parallel,
		time.Duration(len(targets))*s.lasts)
	var all []outcome
	for i, t := range targets {
		if ctx.Err() != nil {
			break
		}
		fmt.Fprintf(s.out, "%s  target %d of %d: %s %s; compiling takes minutes the first time\n",
			time.Now().Format("15:04:05"), i+1, len(targets), t.pkg, t.name)
		o := s.run(ctx, t)
		o.print(s.out)
		all = append(all, o)
	}
	fmt.Fprintln(s.out)
	var failed []string
	for _, o := range all {
		o.print(s.out)
		if o.err != nil || len(o.finding) > 0 {
			failed = append(failed, o.name)
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("ended after %d of %d targets: %w", len(all), len(targets), err)
	}
	if len(failed) > 0 {
		return errors.New("targets failed: " + strings.Join(failed, ", "))
	}
	return nil
}

// print prints the result of the target in a line, or with its output if it failed.
func (o outcome) print(w io.Writer) {
	verdict := "nothing found"
	switch {
	case o.err != nil:
		verdict = "failed: " + o.err.Error()
	case len(o.finding) > 0:
		verdict = "FOUND"
		if o.input != "" {
			verdict += fmt.Sprintf(": the input is in %s; run it with: go test -run=%s/%s %s", o.input, o.name,
				filepath.Base(o.input), o.pkg)
		}
	}
	fmt.Fprintf(w, "%-45s %8s  %10d executions  %5d new inputs  %s\n", o.pkg+" "+o.name, o.took.Round(time.Second),
		o.execs, o.interesting, verdict)
	for _, line := range o.finding {
		fmt.Fprintln(w, "      ", line)
	}
}
