// Scale measures the daemon over many small clusters, which are simulated on the same machine.
//
//	go run ./cmd/scale                         10 and 100 clusters
//	go run ./cmd/scale -clusters 10,300,1000   these numbers of clusters, one after the other
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/mirador-k8s/mirador/dev/bench/daemon"
	"github.com/mirador-k8s/mirador/dev/bench/simulate"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := scale(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintf(os.Stderr, "scale: %v\n", err)
		}
		os.Exit(1)
	}
}

// trial is one measurement.
type trial struct {
	simulate.Size
	rest    time.Duration // how long the daemon is left alone before its memory and idle CPU are measured
	timeout time.Duration // for the start
	reads   int
}

func scale(ctx context.Context, args []string, out, progress io.Writer) error {
	var t trial
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	flags.SetOutput(progress)
	clusters := flags.String("clusters", "10,100", "the numbers of clusters")
	flags.IntVar(&t.Resources, "resources", 60, "resources in each cluster")
	flags.IntVar(&t.WithPods, "with-pods", 10, "clusters that have pods")
	flags.IntVar(&t.Pods, "pods", 1000, "pods in each of these")
	flags.DurationVar(&t.rest, "rest", 70*time.Second, "time without requests before memory and idle CPU are measured")
	flags.DurationVar(&t.timeout, "timeout", 10*time.Minute, "longest time for the start of each number of clusters")
	flags.IntVar(&t.reads, "reads", 500, "reads of each kind")
	if err := flags.Parse(args); err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "clusters\tsynced\tresident\theap\tgoroutines\tidle CPU\tget p50\tlist p50\t/clusters\t/metrics")
	for n := range strings.SplitSeq(*clusters, ",") {
		one := t
		var err error
		if one.Clusters, err = strconv.Atoi(n); err != nil || one.Clusters < 1 {
			return fmt.Errorf("read -clusters: %q is not a number of clusters", n)
		}
		one.WithPods = min(one.WithPods, one.Clusters)
		fmt.Fprintf(progress, "scale: %d clusters\n", one.Clusters)
		row, err := one.measure(ctx)
		if err != nil {
			return fmt.Errorf("%d clusters: %w", one.Clusters, err)
		}
		fmt.Fprintln(table, row)
	}
	return table.Flush()
}

// measure returns a row of the table.
func (t *trial) measure(ctx context.Context) (row string, err error) {
	dir, err := os.MkdirTemp("", "scale-")
	if err != nil {
		return "", fmt.Errorf("make a folder for the daemon: %w", err)
	}
	defer os.RemoveAll(dir)
	configs := filepath.Join(dir, "clusters")
	if err := os.Mkdir(configs, 0o700); err != nil {
		return "", fmt.Errorf("make the folder of kubeconfigs: %w", err)
	}
	sims, err := simulate.Start(configs, t.Size)
	if err != nil {
		return "", err
	}
	defer sims.Stop()
	began := time.Now()
	f, err := daemon.Over(dir, configs)
	if err != nil {
		return "", err
	}
	defer f.Stop()
	if err := t.waitSynced(ctx, f, sims); err != nil {
		return "", err
	}
	columns := []string{strconv.Itoa(t.Clusters), time.Since(began).Round(100 * time.Millisecond).String()}
	for _, part := range []func(context.Context, *daemon.Fleet, *simulate.Clusters) ([]string, error){t.idle, t.answers} {
		more, err := part(ctx, f, sims)
		if err != nil {
			return "", err
		}
		columns = append(columns, more...)
	}
	return strings.Join(columns, "\t"), nil
}

// waitSynced waits until all states were sent, the daemon is ready, and it answers for each cluster with pods.
func (t *trial) waitSynced(ctx context.Context, f *daemon.Fleet, sims *simulate.Clusters) error {
	want, synced := t.Clusters*t.Resources, 0
	for deadline := time.Now().Add(t.timeout); time.Now().Before(deadline); {
		if sims.States() >= want && f.Answers(ctx, "/readyz") {
			for synced < t.WithPods && f.Answers(ctx, "/clusters/"+simulate.Name(synced)+"/api/v1/pods?limit=1") {
				synced++
			}
			if synced == t.WithPods {
				return nil
			}
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fmt.Errorf("not synced after %s: %d of %d resources were read", t.timeout, sims.States(), want)
}

// idle measures the daemon without requests.
func (t *trial) idle(ctx context.Context, f *daemon.Fleet, _ *simulate.Clusters) (columns []string, err error) {
	rest := func() {
		select {
		case <-time.After(t.rest):
		case <-ctx.Done():
		}
	}
	rest() // the work of the start ends
	used, began := f.CPU(), time.Now()
	rest()
	idle := float64(f.CPU()-used) / float64(time.Since(began))
	rss, err := f.RSS()
	if err != nil {
		return nil, err
	}
	heap, err := f.Metric(ctx, "go_memstats_heap_alloc_bytes")
	if err != nil {
		return nil, err
	}
	goroutines, err := f.Metric(ctx, "go_goroutines")
	if err != nil {
		return nil, err
	}
	return []string{mib(rss), mib(heap), fmt.Sprintf("%.0f", goroutines), fmt.Sprintf("%.1f%%", 100*idle)}, nil
}

func mib(bytes float64) string { return fmt.Sprintf("%.0f MiB", bytes/(1<<20)) }

// answers measures requests.
func (t *trial) answers(ctx context.Context, f *daemon.Fleet, sims *simulate.Clusters) (columns []string, err error) {
	for _, r := range []struct {
		reads int
		sized bool
		path  func(i int) string
	}{
		{t.reads, false, func(i int) string {
			at := i % t.WithPods
			return "/clusters/" + simulate.Name(at) + sims.PodPath(at, i)
		}},
		{t.reads, false, func(i int) string {
			return "/fleet/api/v1/pods?labelSelector=" + sims.WorkloadSelector(i%t.WithPods, i)
		}},
		{3, true, func(int) string { return "/clusters" }},
		{3, true, func(int) string { return "/metrics" }},
	} {
		l, err := f.Measure(ctx, r.reads, false, r.path)
		if err != nil {
			return nil, err
		}
		column := fmt.Sprintf("%.2f ms", float64(l.P50)/float64(time.Millisecond))
		if r.sized {
			column = fmt.Sprintf("%.2f MB, %.0f ms", float64(l.Bytes)/1e6, float64(l.P50)/float64(time.Millisecond))
		}
		columns = append(columns, column)
	}
	return columns, nil
}
