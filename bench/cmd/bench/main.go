// Bench measures this project against client-go, side by side in one run, and says
// which goals are met.
//
//	go run ./cmd/bench                 everything, some 20 minutes
//	go run ./cmd/bench -quick          a smoke run with small sizes, which records nothing
//	go run ./cmd/bench -only heap      the cases whose name matches
//	go run ./cmd/bench -check          compare with what is recorded; exit 1 if worse
//	go run ./cmd/bench -check -same    note how far the same code lies from what is recorded
//	go run ./cmd/bench -rounds 3 -budget 2h
//	                                   a record with three rounds of everything that nobody disturbed, for checks to compare with
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

	"github.com/mirador-k8s/mirador/bench/cases"
	"github.com/mirador-k8s/mirador/bench/harness"
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
	same         bool
	only, out    string
	repeat, pods int
	rounds       int
	budget       time.Duration
	patience     time.Duration
}

// defaults sets what was not given. A check takes longer: the time is for what looks worse, until that is sure.
func (s *settings) defaults() {
	budget, patience := 19*time.Minute, 3*time.Minute
	if s.check {
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
	flags.BoolVar(&s.check, "check", false, "compare with the recorded results instead of recording new ones; fail if a ratio is worse by more than the noise")
	flags.BoolVar(&s.same, "same", false, "with -check: the code is the recorded one, so whatever differs is noise; note it in the record for later checks to allow for")
	flags.StringVar(&s.only, "only", "", "run the cases whose name matches this regular expression")
	flags.StringVar(&s.out, "out", "", "folder of the results: \"results\", and none for a quick run, where nothing is given")
	flags.IntVar(&s.repeat, "repeat", 0, "how often every variant is run at most; 0 is what each case needs")
	flags.IntVar(&s.pods, "pods", 0, "how many pods the real API server gets; 0 is 50,000")
	flags.IntVar(&s.rounds, "rounds", 1, "measure everything in so many rounds at least that nobody disturbed, within the budget: three tell a later check how far rounds lie apart")
	flags.DurationVar(&s.budget, "budget", 0, "begin no further repetition after this time; 0 is 19m, and 45m for -check, which repeats only what looks worse")
	flags.DurationVar(&s.patience, "patience", 0, "wait so long in all while others take much of the machine's processors; 0 is 3m, and 10m for -check; a quick run does not wait")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("it takes no argument %q: see -help", flags.Arg(0))
	}
	if s.out == "" && !s.quick {
		s.out = "results"
	}
	if s.same && !s.check {
		return errors.New("-same is about the record that -check compares with: give -check as well")
	}
	if s.check && s.out == "" {
		return errors.New("-check of a quick run needs -out, the folder that another quick run recorded")
	}
	chosen, err := choose(cases.All(), s.only)
	if err != nil {
		return err
	}
	var recorded []harness.Result
	if s.check {
		if recorded, err = harness.Load(s.out); err != nil {
			return err
		}
	}
	s.defaults()
	rows, failed := harness.Run(ctx, chosen, harness.Options{
		Params: harness.Params{Quick: s.quick, Pods: s.pods}, Budget: s.budget, Patience: s.patience, Repeat: s.repeat, Rounds: s.rounds, Recorded: recorded,
		Progress: progress, Terminal: isTerminal(progress),
	})
	if s.quick {
		fmt.Fprintln(out, "A quick run: sizes are a fraction of what the rows say, and nothing is repeated.")
	}
	if err := harness.WriteTable(out, rows); err != nil {
		return err
	}
	switch {
	case s.same:
		return errors.Join(failed, harness.SaveRows(s.out, harness.Noted(recorded, rows)))
	case s.check:
		return errors.Join(failed, verdict(out, harness.Compare(recorded, rows)))
	case s.out == "" || s.only != "" && !s.quick:
		return failed // part of the rows would replace all that are recorded
	case failed != nil:
		return fmt.Errorf("%w\nnothing is recorded: rows are missing, and they would replace a whole table", failed)
	}
	return harness.Save(s.out, rows, harness.ThisMachine())
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
		fmt.Fprintln(out, "too disturbed to tell:", d)
	}
	fmt.Fprintf(out, "%d rows compared with the record, %d worse, %d not sure, %d too disturbed to tell (run it again, or -only their case). In %d a change by half would not have been seen: the noise, then or now, was larger.\n",
		v.Compared, len(v.Worse), len(v.Unsure), len(v.Disturbed), v.Blind)
	switch {
	case len(v.Worse) > 0:
		return fmt.Errorf("%d rows are worse than recorded: -only REGEX -check measures the case of one again", len(v.Worse))
	case len(v.Unsure) > 0:
		return fmt.Errorf("the time was over with %d rows that look worse in too few rounds to be sure: -budget 2h gives it more, -only REGEX -check measures the case of one alone", len(v.Unsure))
	}
	return nil
}

// isTerminal says whether a progress line can be rewritten.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
