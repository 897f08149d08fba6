package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"time"
)

func main() {
	minutes := flag.Float64("minutes", 10, "how many minutes each target is run")
	only := flag.String("only", "", "a regular expression: run the targets whose names it matches")
	parallel := flag.Int("parallel", runtime.GOMAXPROCS(0), "how many inputs are tried at a time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := fuzz(ctx, *minutes, *only, *parallel); err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
}

func fuzz(ctx context.Context, minutes float64, only string, parallel int) error {
	if !(minutes > 0) || minutes > 24*60 {
		return fmt.Errorf("%v minutes: give between 0 and a day", minutes)
	}
	if parallel < 1 {
		return fmt.Errorf("%d inputs at a time: give at least one", parallel)
	}
	pattern, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	targets, err := findTargets(".", pattern)
	if err != nil {
		return err
	}
	lasts := time.Duration(minutes * float64(time.Minute)).Round(time.Second)
	return settings{root: ".", lasts: max(lasts, time.Second), parallel: parallel, out: os.Stdout}.runAll(ctx, targets)
}
