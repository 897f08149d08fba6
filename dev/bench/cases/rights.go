package cases

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/mirador-k8s/mirador/dev/bench/daemon"
	"github.com/mirador-k8s/mirador/dev/bench/harness"
	"github.com/mirador-k8s/mirador/dev/bench/rights"
)

// manyUsers is how many users with different rights there are.
const manyUsers = 500

// userRights measures what users with different rights cost: 100,000 pods in ten simulated clusters with 500
// namespaces each, of which each user may see a tenth.
func userRights() harness.Case {
	const lists, revocation, audit, memory, decision = "lists", "revocation", "audit", "memory", "decision"
	c := harness.Case{Name: "rights", Repeat: 3, Variants: []harness.Variant{
		{Name: lists, Run: filteredLists}, {Name: memory, Run: rightsMemory}, {Name: decision, Run: decisions},
		{Name: revocation, Run: revocations}, {Name: audit, Run: auditedGets},
	}}
	row := func(name, unit, variant, figure string, goal harness.Goal) {
		c.Rows = append(c.Rows, harness.Row{Name: "rights: " + name, Unit: unit, Ours: variant, Figure: figure, Goal: goal,
			Sheltered: variant == memory})
	}
	none := harness.Goal{}
	for _, shape := range rights.Shapes() {
		row(fmt.Sprintf("fleet list of 10,000 pods like those %s, not filtered, p50", shape), "ms", lists,
			shape.String()+" unfiltered", none)
		name := fmt.Sprintf("fleet list of 10,000 of 100,000 pods, filtered %s, each user once, ", shape)
		row(name+"p50", "ms", lists, shape.String(), none)
		row(name+"times the one that is not filtered", "x", lists, shape.String()+" ratio", harness.Bound(1.2))
	}
	row("fleet lists of ten pods, 500 users in turn", "/s", lists, "rate", none)
	row("fleet lists of ten pods, 4 users in turn, times those of 500", "x", lists, "rate ratio", none)
	row("a decision, 5,000 bindings, 500 users, p50", "us", decision, "p50", harness.Bound(5))
	row("a decision, 5,000 bindings, 500 users, p99", "us", decision, "p99", none)
	row("memory of the mirror, 100,000 pods", "MiB", memory, "mirror", none)
	row("memory for rights, 5,000 bindings, after 500 users have listed", "MiB", memory, "rights", none)
	row("memory for rights, share of the mirror's", "%", memory, "share", harness.Bound(5))
	row("from the deletion of a binding to the end of a watch, real cluster, 200 watches, p50", "ms", revocation, "p50",
		none)
	row("from the deletion of a binding to the end of a watch, real cluster, 200 watches, p99", "ms", revocation, "p99",
		harness.Bound(1000))
	row("get without an audit log, p50", "us", audit, "without", none)
	row("get with an audit log, p50", "us", audit, "with", none)
	row("get with an audit log, times the one without", "x", audit, "ratio", none)
	return c
}

// fleetOfUsers is the size of the fleet whose users have different rights.
func fleetOfUsers(p *harness.Params, shapes ...rights.Shape) daemon.Size {
	return daemon.Size{Clusters: 10, Pods: p.Size(100_000, 8_000), Namespaces: p.Size(500, 40),
		Users: rights.Users(manyUsers, shapes...)}
}

func startFleet(ctx context.Context, p *harness.Params, size daemon.Size) (*daemon.Fleet, error) {
	dir, err := os.MkdirTemp(p.Scratch, "rights-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the daemon: %w", err)
	}
	return daemon.Start(ctx, dir, size)
}

func filteredLists(ctx context.Context, p *harness.Params) (harness.Figures, error) {
	size := fleetOfUsers(p, rights.Shapes()...)
	size.Samples = daemon.SamplesFor(size.Namespaces)
	f, err := startFleet(ctx, p, size)
	if err != nil {
		return nil, err
	}
	defer f.Stop()
	l, err := f.MeasureFiltered(ctx, p.Size(30, 3))
	if err != nil {
		return nil, err
	}
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	out := harness.Figures{}
	for shape, took := range l.P50 {
		name := shape.String()
		out[name], out[name+" unfiltered"], out[name+" ratio"] = ms(took), ms(l.Unfiltered[shape]), l.Ratio[shape]
	}
	rates, err := f.RateOfUsers(ctx, 8, p.Size(5, 1), time.Second)
	if err != nil {
		return nil, err
	}
	out["rate"], out["rate ratio"] = rates.All, rates.One/rates.All
	return out, nil
}

func revocations(ctx context.Context, p *harness.Params) (harness.Figures, error) {
	users := rights.Users(p.Size(200, 20), rights.Clusters)
	f, err := startFleet(ctx, p, daemon.Size{Real: 1, RealPods: p.Size(1_000, 100), Users: users})
	if err != nil {
		return nil, err
	}
	defer f.Stop()
	l, err := f.MeasureRevocations(ctx, users, 10)
	if err != nil {
		return nil, err
	}
	return harness.Figures{"p50": l.P50.Seconds() * 1e3, "p99": l.P99.Seconds() * 1e3}, nil
}

// auditedGets measures gets through two daemons in turn, of which one writes an audit log.
func auditedGets(ctx context.Context, p *harness.Params) (harness.Figures, error) {
	size := daemon.Size{Clusters: 1, Pods: 1_000}
	without, err := startFleet(ctx, p, size)
	if err != nil {
		return nil, err
	}
	defer without.Stop()
	size.Flags = []string{"--audit-log-path", filepath.Join(p.Scratch, "audit.log")}
	with, err := startFleet(ctx, p, size)
	if err != nil {
		return nil, err
	}
	defer with.Stop()
	var rounds []harness.Figures
	for range p.Size(11, 2) {
		figures := harness.Figures{}
		for name, f := range map[string]*daemon.Fleet{"with": with, "without": without} {
			l, err := f.Measure(ctx, p.Size(1_000, 100), false, f.GetPath)
			if err != nil {
				return nil, err
			}
			figures[name] = float64(l.P50) / float64(time.Microsecond)
		}
		figures["ratio"] = figures["with"] / figures["without"]
		rounds = append(rounds, figures)
	}
	return harness.Medians(rounds), nil
}
