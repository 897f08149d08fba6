// Structures measures what a store with snapshots and indexes could be made of, and
// writes results/structures.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/mirador-k8s/mirador/dev/bench/harness"
	"github.com/mirador-k8s/mirador/dev/bench/structures"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "structures: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	cases := []harness.Case{structures.Case()}
	if len(os.Args) > 1 && os.Args[1] == harness.ChildArgument {
		return harness.Child(ctx, cases, os.Stdin, os.Stdout)
	}
	quick := flag.Bool("quick", false, "small sizes and one repetition: a smoke run, which records nothing")
	out := flag.String("out", "results", "folder of the results")
	flag.Parse()
	repeat := 0
	if *quick {
		repeat = 1
	}
	rows, err := harness.Run(ctx, cases, harness.Options{
		Params: harness.Params{Quick: *quick}, Budget: 10 * time.Minute, Repeat: repeat, Progress: os.Stderr,
	})
	if err != nil {
		return err
	}
	fmt.Print(structures.Table(rows))
	if *quick {
		return nil
	}
	if err := os.MkdirAll(*out, 0o755); err != nil {
		return fmt.Errorf("make the folder for the results: %w", err)
	}
	page := structures.Page(rows, harness.ThisMachine())
	if err := os.WriteFile(filepath.Join(*out, "structures.md"), []byte(page), 0o644); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}
