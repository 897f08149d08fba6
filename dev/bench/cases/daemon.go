package cases

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/mirador-k8s/mirador/dev/bench/daemon"
	"github.com/mirador-k8s/mirador/dev/bench/harness"
)

// served measures the daemon: 100,000 pods in ten simulated clusters and 10,000 in each of two real ones, read over
// its socket by a client on the same machine, every answer to its last byte. The row names have the figures that
// Karmada published for the same number of pods and clusters, on other machines.
func served() harness.Case {
	const ours = "daemon"
	c := harness.Case{Name: "daemon", Repeat: 1, Variants: []harness.Variant{{Name: ours, Run: serve}}}
	for _, r := range []struct {
		name, figure, unit string
		goal               float64
	}{
		{"resident memory after sync (Karmada's proxy: some 70 KB a pod)", "rss", "MiB", 400},
		{"resident memory after all of the load", "rss after", "MiB", 0},
		{"from start to all mirrored", "sync", "s", 0},
		{"get, p50 (Karmada's proxy: 1.8 ms)", "get p50", "ms", 0.5},
		{"get, p99", "get p99", "ms", 0},
		{"list of 100 by label, p50 (Karmada's proxy: 53 ms)", "list100 p50", "ms", 2},
		{"list of 100 by label, p99", "list100 p99", "ms", 0},
		{"list of 10,000, p50 (Karmada's proxy: 2.5 s)", "list10k p50", "ms", 150},
		{"list of 10,000, its size", "list10k size", "MB", 0},
		{"list of 10,000 of a real cluster, p50", "real p50", "ms", 0},
		{"list of 10,000, gzip, p50", "gzip p50", "ms", 0},
		{"list of 10,000, gzip, its size", "gzip size", "MB", 0},
		{"first page of 500 of all 12 clusters, p50", "page p50", "ms", 0},
		{"get beside 50 parallel scans, p50", "scanned get p50", "ms", 20},
		{"get beside 50 parallel scans, p99", "scanned get p99", "ms", 0},
		{"list of 100 by label beside 50 parallel scans, p50", "scanned list p50", "ms", 0},
		{"list of 10,000 beside 64 slow readers, p50", "slow list p50", "ms", 0},
		{"1,000 watches of 100 namespaces, 500 changes/s, each to 10 watches, p50", "watch p50", "ms", 0},
		{"1,000 watches of 100 namespaces, 500 changes/s, each to 10 watches, p99", "watch p99", "ms", 100},
		{"1,000 PartialObjectMetadata watches of everything, changes", "meta rate", "/s", 0},
		{"1,000 PartialObjectMetadata watches of everything, lines received", "meta lines", "/s", 0},
	} {
		row := harness.Row{Name: "daemon, 120k pods in 12 clusters: " + r.name, Unit: r.unit, Ours: ours, Figure: r.figure}
		if r.goal > 0 {
			row.Goal = harness.AtMost(r.goal)
		}
		c.Rows = append(c.Rows, row)
	}
	return c
}

func serve(ctx context.Context, p *harness.Params) (harness.Figures, error) {
	dir, err := os.MkdirTemp(p.Scratch, "daemon-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the daemon: %w", err)
	}
	f, err := daemon.Start(ctx, dir, daemon.Size{Clusters: 10, Pods: p.Size(100_000, 2_000), Real: p.Size(2, 1),
		RealPods: p.Size(10_000, 200)})
	if err != nil {
		return nil, err
	}
	defer f.Stop()
	out := harness.Figures{"sync": f.SyncTime.Seconds()}
	if err := memory(f, out, "rss"); err != nil {
		return nil, err
	}
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	for _, r := range []struct {
		name string
		n    int
		gzip bool
		path func(int) string
	}{
		{"get", p.Size(5_000, 100), false, f.GetPath},
		{"list100", p.Size(1_000, 50), false, f.WorkloadPath},
		{"list10k", p.Size(30, 5), false, f.AllPath},
		{"real", p.Size(10, 3), false, f.RealPath},
		{"gzip", p.Size(10, 3), true, f.AllPath},
		{"page", p.Size(50, 5), false, f.PagePath},
	} {
		l, err := f.Measure(ctx, r.n, r.gzip, r.path)
		if err != nil {
			return nil, err
		}
		out[r.name+" p50"], out[r.name+" p99"], out[r.name+" size"] = ms(l.P50), ms(l.P99), float64(l.Bytes)/1e6
	}
	if err := beside(ctx, f, p, out); err != nil {
		return nil, err
	}
	w, err := f.WatchNamespaces(ctx, 10, p.Size(5_000, 200), 500)
	if err != nil {
		return nil, err
	}
	out["watch p50"], out["watch p99"] = ms(w.P50), ms(w.P99)
	if w, err = f.WatchMetadata(ctx, p.Size(1_000, 50), p.Size(1_000, 100)); err != nil {
		return nil, err
	}
	out["meta rate"], out["meta lines"] = w.Rate, w.Lines
	return out, memory(f, out, "rss after")
}

// beside measures reads while other clients scan everything, and while other clients read slowly.
func beside(ctx context.Context, f *daemon.Fleet, p *harness.Params, out harness.Figures) error {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	stopScans := f.Scans(ctx, 50)
	get, err := f.Measure(ctx, p.Size(500, 50), false, f.GetPath)
	if err == nil {
		out["scanned get p50"], out["scanned get p99"] = ms(get.P50), ms(get.P99)
		var list daemon.Latency
		list, err = f.Measure(ctx, p.Size(100, 10), false, f.WorkloadPath)
		out["scanned list p50"] = ms(list.P50)
	}
	if err := errors.Join(err, stopScans()); err != nil {
		return err
	}
	stopReaders, err := f.SlowReaders(64)
	if err != nil {
		return err
	}
	defer stopReaders()
	list, err := f.Measure(ctx, p.Size(10, 3), false, f.AllPath)
	out["slow list p50"] = ms(list.P50)
	return err
}

func memory(f *daemon.Fleet, out harness.Figures, name string) error {
	rss, err := f.RSS()
	out[name] = rss / (1 << 20)
	return err
}
