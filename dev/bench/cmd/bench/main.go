// Bench measures this project against client-go, side by side in one run, and reports which goals are met.
//
//	go run ./cmd/bench                 everything, about 20 minutes
//	go run ./cmd/bench -quick          a smoke run with small sizes, which records nothing
//	go run ./cmd/bench -only heap      the cases whose name matches
//	go run ./cmd/bench -check          compare with the record; exit 1 if worse
//	go run ./cmd/bench -add            add rounds to the record, until each row has three undisturbed ones
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/mirador-k8s/mirador/dev/bench/cases"
	"github.com/mirador-k8s/mirador/dev/bench/harness"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	klog.LogToStderr(true)
	if len(os.Args) > 1 && os.Args[1] == harness.ChildArgument {
		if err := harness.Child(ctx, cases.All(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if err := bench(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		}
		os.Exit(1)
	}
}

type settings struct {
	quick, check bool
	add          bool
	only, out    string
	repeat, pods int
	budget       time.Duration
	patience     time.Duration
}

// defaults sets the values that were not given. A check takes longer, because it repeats what looks worse, and so does
// adding to a record.
func (s *settings) defaults() {
	budget, patience := 19*time.Minute, 3*time.Minute
	switch {
	case s.check:
		budget, patience = 75*time.Minute, 10*time.Minute
	case s.add:
		budget, patience = 45*time.Minute, 10*time.Minute
	}
	s.budget, s.patience = cmp.Or(s.budget, budget), cmp.Or(s.patience, patience)
	if s.quick {
		s.repeat, s.patience = cmp.Or(s.repeat, 1), 0
	}
}

func bench(ctx context.Context, args []string, out, progress io.Writer) error {
	var s settings
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(progress)
	flags.BoolVar(&s.quick, "quick", false, "small sizes and one repetition: a smoke run")
	flags.BoolVar(&s.check, "check", false,
		"compare with the recorded results instead of recording new ones; fail if a ratio is worse by more than the noise")
	flags.BoolVar(&s.add, "add", false,
		"add rounds to those recorded, of the same code, until each row has three undisturbed ones: they tell a "+
			"check how much rounds vary")
	flags.StringVar(&s.only, "only", "", "run the cases whose name matches this regular expression")
	flags.StringVar(&s.out, "out", "",
		"folder of the results; the default is \"results\", and none for a quick run")
	flags.IntVar(&s.repeat, "repeat", 0, "the most repetitions of a variant; 0 is what each case needs")
	flags.IntVar(&s.pods, "pods", 0, "the number of pods in the real API server; 0 is 50,000")
	flags.DurationVar(&s.budget, "budget", 0,
		"start no further repetition after this time; 0 is 19m, 45m for -add and 75m for -check, which repeats only what "+
			"looks worse")
	flags.DurationVar(&s.patience, "patience", 0,
		"wait at most this long in total while the host gives much of the CPU to others; 0 is 3m, and 10m for -add and "+
			"-check; a quick run does not wait")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: see -help", flags.Arg(0))
	}
	if s.out == "" && !s.quick {
		s.out = "results"
	}
	if s.add && s.check {
		return errors.New("-check compares with the record and -add adds to it: use only one of them")
	}
	if (s.check || s.add) && s.out == "" {
		return errors.New("-check or -add of a quick run needs -out, the folder that another quick run recorded")
	}
	chosen, err := choose(cases.All(), s.only)
	if err != nil {
		return err
	}
	var recorded []harness.Result
	trials := harness.Trials{}
	switch {
	case s.check:
		recorded, err = harness.Load(s.out)
	case s.add:
		trials, err = harness.LoadTrials(s.out)
	}
	if err != nil {
		return err
	}
	s.defaults()
	rows, failed := harness.Run(ctx, chosen, harness.Options{
		Params: harness.Params{Quick: s.quick, Pods: s.pods}, Budget: s.budget, Patience: s.patience,
		Repeat: s.repeat, Recorded: recorded,
		Trials: trials, Add: s.add, Progress: progress, Terminal: isTerminal(progress),
	})
	if s.quick {
		fmt.Fprintln(out, "A quick run: sizes are smaller than the rows say, and nothing is repeated.")
	}
	if err := harness.WriteTable(out, rows); err != nil {
		return err
	}
	switch {
	case s.check:
		return errors.Join(failed, verdict(out, harness.Compare(recorded, rows)))
	case s.add:
		return errors.Join(failed, added(s.out, trials))
	case s.out == "" || s.only != "" && !s.quick:
		return failed // some rows would replace the whole record
	case failed != nil:
		return fmt.Errorf("%w\nnothing is recorded: rows are missing, and the result would replace a whole table", failed)
	}
	return errors.Join(trials.Save(s.out), harness.Save(s.out, rows, harness.ThisMachine()))
}

// added records trials next to those of earlier runs, including those of an interrupted run, and the table once it is
// complete.
func added(dir string, trials harness.Trials) error {
	if err := trials.Save(dir); err != nil {
		return err
	}
	all, whole := cases.All(), 0
	for _, c := range all {
		whole += len(c.Rows)
	}
	rows := harness.Rows(all, trials)
	if missing := whole - len(rows); missing > 0 {
		return fmt.Errorf("the trials are recorded, the table is not: %d of its rows have not been measured yet; -add "+
			"again continues", missing)
	}
	recorded, err := harness.Load(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return harness.Save(dir, harness.Improve(recorded, rows), harness.ThisMachine())
}

func choose(all []harness.Case, only string) ([]harness.Case, error) {
	if err := harness.Validate(all); err != nil {
		return nil, err
	}
	match, err := regexp.Compile(only)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	chosen := slices.DeleteFunc(all, func(c harness.Case) bool { return !match.MatchString(c.Name) })
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no case matches -only %q", only)
	}
	return chosen, nil
}

func verdict(out io.Writer, v harness.Verdict) error {
	fmt.Fprintln(out)
	for _, w := range v.Worse {
		fmt.Fprintln(out, "worse:", w)
	}
	for _, u := range v.Unsure {
		fmt.Fprintln(out, "not sure:", u)
	}
	for _, d := range v.Disturbed {
		fmt.Fprintln(out, "too disturbed to compare:", d)
	}
	fmt.Fprintf(out,
		"%d rows compared with the record, %d worse, %d not sure, %d too disturbed to compare (run again, or with -only "+
			"their case). In %d rows the noise, then or now, would hide a change by half.\n",
		v.Compared, len(v.Worse), len(v.Unsure), len(v.Disturbed), v.Blind)
	switch {
	case len(v.Worse) > 0:
		return fmt.Errorf("%d rows are worse than recorded: -only REGEX -check repeats one case", len(v.Worse))
	case len(v.Unsure) > 0:
		return fmt.Errorf("the time ran out with %d rows that look worse in too few rounds to be sure: -budget 2h allows "+
			"more, -only REGEX -check runs a single case", len(v.Unsure))
	}
	return nil
}

// isTerminal reports whether a progress line can be rewritten.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
