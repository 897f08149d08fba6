package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// flags are the command-line flags.
type flags struct {
	minutes, pods, churn int
	devcluster, cluster  string
	dir                  string
}

func main() {
	var f flags
	flag.IntVar(&f.minutes, "minutes", 30, "how many minutes the pods are changed")
	flag.IntVar(&f.pods, "pods", 20_000, "the number of pods")
	flag.IntVar(&f.churn, "churn", 200, "changes a second")
	flag.StringVar(&f.devcluster, "devcluster", "bin/devcluster", "the program that fills the cluster")
	flag.StringVar(&f.cluster, "cluster", "soak", "devcluster's name of the cluster in KUBECONFIG")
	flag.StringVar(&f.dir, "out", "bin/soak", "the folder for the series")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := f.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func (f flags) run(ctx context.Context) error {
	if f.minutes < 1 || f.pods < 1 || f.churn < 1 {
		return errors.New("minutes, pods and churn must be at least 1")
	}
	path := os.Getenv("KUBECONFIG")
	if path == "" {
		return errors.New("KUBECONFIG is not set; run `make soak`, which starts a cluster")
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return fmt.Errorf("read the kubeconfig %s: %w", path, err)
	}
	cfg.QPS = -1
	fmt.Printf("filling the cluster with %d pods; this takes minutes\n", f.pods)
	if err := f.load(ctx); err != nil {
		return err
	}
	lasts := time.Duration(f.minutes) * time.Minute
	p := plan{
		cfg: cfg, lasts: lasts, every: 10 * time.Second, guests: 10, stay: 40 * time.Second, out: os.Stdout,
		churn: func(ctx context.Context) error {
			return f.load(ctx, "--churn", strconv.Itoa(f.churn), "--duration", lasts.String())
		},
	}
	out, err := p.soak(ctx)
	if err != nil {
		return err
	}
	return f.report(out)
}

// load runs `devcluster load`. Its output is shown only if it fails, so that it does not mix with ours.
func (f flags) load(ctx context.Context, more ...string) error {
	args := append([]string{"load", "--name", f.cluster, "--pods", strconv.Itoa(f.pods),
		"--templates", strconv.Itoa(max(1, f.pods/100)), "--namespaces", strconv.Itoa(max(1, min(20, f.pods/100)))}, more...)
	cmd := exec.CommandContext(ctx, f.devcluster, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s load: %w; it said:\n%s", f.devcluster, err, said)
	}
	return nil
}

// report writes the series and prints the verdict.
func (f flags) report(out outcome) error {
	out.Flat = verdicts(out.Samples)
	data, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return err
	}
	for name, content := range map[string][]byte{"series.json": data, "series.svg": []byte(plot(out))} {
		if err := os.WriteFile(filepath.Join(f.dir, name), content, 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("\nthe series are in %s, plotted in %s\n", filepath.Join(f.dir, "series.json"),
		filepath.Join(f.dir, "series.svg"))
	bad := len(out.Wrong)
	for _, s := range out.Flat {
		ok, err := s.flat()
		switch {
		case err != nil:
			return err
		case ok:
			fmt.Println("flat     ", s)
		default:
			bad++
			fmt.Println("NOT FLAT ", s)
		}
	}
	for _, w := range out.Wrong {
		fmt.Println("WRONG    ", w)
	}
	for _, p := range out.Problems {
		fmt.Println("reported ", p)
	}
	if bad > 0 {
		return fmt.Errorf("%d checks failed", bad)
	}
	fmt.Printf("nothing was lost: both mirrors equal the server's list, and every permanent handler its mirror; after "+
		"the stop %d goroutines and %d files, before the start %d and %d\n",
		out.After.Goroutines, out.After.Files, out.Before.Goroutines, out.Before.Files)
	return nil
}
