package cases

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/mirador-k8s/mirador/dev/bench/daemon"
	"github.com/mirador-k8s/mirador/dev/bench/harness"
)

// restarted measures what the data folder costs, beside a daemon without one, and what it saves when the daemon is
// killed while 100,000 pods in ten simulated clusters change.
func restarted() harness.Case {
	const disk, memory = "disk", "memory"
	c := harness.Case{Name: "restart", Repeat: 3, Variants: []harness.Variant{
		{Name: memory, Run: func(ctx context.Context, p *harness.Params) (harness.Figures, error) {
			return restart(ctx, p, false)
		}},
		{Name: disk, Run: func(ctx context.Context, p *harness.Params) (harness.Figures, error) {
			return restart(ctx, p, true)
		}}}}
	row := func(name, unit, figure string, goal harness.Goal) {
		c.Rows = append(c.Rows, harness.Row{Name: "data folder, 100,000 pods in 10 clusters: " + name, Unit: unit,
			Ours: disk, Peer: memory, Figure: figure, Goal: goal})
	}
	row("processor time of a change, 500 changes/s (beside: without)", "us", "change", harness.Ratio(1.1))
	row("resident memory after the changes (beside: without)", "MiB", "rss", harness.Goal{})
	row("killed under load, from the start until every pod is served (beside: without)", "s", "served",
		harness.AtMost(1))
	row("killed under load, clusters that are read again (beside: without)", "", "states", harness.Goal{})
	row("killed under load, of 1,000 watches of clients those that get 410 (beside: without)", "", "gone",
		harness.AtMost(0))
	row("killed under load, changes that these watches miss (beside: without)", "", "missing", harness.AtMost(0))
	row("killed under load, changes that these watches receive twice (beside: without)", "", "twice", harness.AtMost(0))
	row("killed under load, from the start until all of these watches are open (beside: without)", "s", "open",
		harness.Goal{})
	c.Rows = append(c.Rows, harness.Row{Name: "data folder, 100,000 pods in 10 clusters: size after 5,000 changes",
		Unit: "MiB", Ours: disk, Figure: "size"})
	return c
}

func restart(ctx context.Context, p *harness.Params, kept bool) (harness.Figures, error) {
	dir, err := os.MkdirTemp(p.Scratch, "restart-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the daemon: %w", err)
	}
	size := daemon.Size{Clusters: 10, Pods: p.Size(100_000, 2_000)}
	data := filepath.Join(dir, "data")
	if kept {
		size.Flags = []string{"--data", data}
	}
	f, err := daemon.Start(ctx, dir, size)
	if err != nil {
		return nil, err
	}
	defer f.Stop()
	time.Sleep(time.Duration(p.Size(5, 1)) * time.Second) // until the first state is written
	change, err := f.Change(ctx, p.Size(5_000, 200), 500)
	if err != nil {
		return nil, err
	}
	out := harness.Figures{"change": float64(change) / float64(time.Microsecond)}
	if err := memory(f, out, "rss"); err != nil {
		return nil, err
	}
	if kept {
		out["size"] = float64(sizeOf(data)) / (1 << 20)
	}
	r, err := f.KillAndRestart(ctx, dir, p.Size(5_000, 400), p.Size(1_000, 40))
	if err != nil {
		return nil, err
	}
	out["served"], out["states"] = r.Served.Seconds(), float64(r.States)
	out["gone"], out["missing"] = float64(r.Clients.Gone), float64(r.Clients.Missing)
	out["twice"], out["open"] = float64(r.Clients.Twice), r.Clients.Took.Seconds()
	return out, nil
}

// sizeOf returns the bytes of the files in a folder.
func sizeOf(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil // a file may be removed meanwhile
		}
		if info, err := e.Info(); err == nil {
			n += info.Size()
		}
		return nil
	})
	return n
}
