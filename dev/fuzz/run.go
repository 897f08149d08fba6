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

// settings are what every target is run with.
type settings struct {
	root     string
	lasts    time.Duration
	parallel int
	out      io.Writer
}

// outcome is what became of a target.
type outcome struct {
	target
	took        time.Duration
	execs       int
	interesting int      // inputs of this run that reached something new
	finding     []string // what the target said when it failed
	input       string   // where the input lies that made it
	err         error    // the target could not be run
}

// A target that does not end within grace of its time hangs. What it is made of is
// compiled anew for fuzzing, which takes minutes the first time, before that time begins.
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
	// By default every input that reaches something new is made smaller for a minute, during
	// which nothing new is tried; inputs as large as pods would take all the time.
	cmd := exec.CommandContext(bounded, "go", "test", "-run=^$", "-fuzz=^"+t.name+"$",
		"-fuzztime="+s.lasts.String(), "-fuzzminimizetime=1s", "-parallel="+strconv.Itoa(s.parallel), t.pkg)
	cmd.Dir = s.root
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // the go command ends its workers then
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
		o.err = fmt.Errorf("it did not end %s after its time: an input hangs", grace)
	case err != nil && !slices.ContainsFunc(o.finding, isFailure):
		o.err = fmt.Errorf("%w: %s", err, strings.Join(o.finding, "\n"))
	case err != nil:
		return o
	}
	o.finding = nil
	return o
}

// isFailure tells the line with which a target fails from those of one that could not
// be compiled.
func isFailure(line string) bool { return strings.HasPrefix(line, "--- FAIL: ") }

var (
	progressLine = regexp.MustCompile(`^fuzz: elapsed: (\S+), execs: (\d+) \((\d+)/sec\)(?:, new interesting: (\d+))?`)
	inputLine    = regexp.MustCompile(`Failing input written to (\S+)`)
)

// follow reads what the go command says. Its progress is passed on twice a minute;
// begun is called when the target runs.
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
	_, _ = io.Copy(io.Discard, r) // so that whoever writes can go on
}

// runAll runs the targets one after the other and reports.
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
		o.tell(s.out)
		all = append(all, o)
	}
	fmt.Fprintln(s.out)
	var failed []string
	for _, o := range all {
		o.tell(s.out)
		if o.err != nil || len(o.finding) > 0 {
			failed = append(failed, o.name)
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("ended after %d of %d targets: %w", len(all), len(targets), err)
	}
	if len(failed) > 0 {
		return errors.New("not without a finding: " + strings.Join(failed, ", "))
	}
	return nil
}

// tell says in a line, or in as many as a finding has, what became of the target.
func (o outcome) tell(w io.Writer) {
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
