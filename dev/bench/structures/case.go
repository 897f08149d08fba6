package structures

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mirador-k8s/mirador/dev/bench/harness"
	"github.com/mirador-k8s/mirador/dev/bench/measure"
)

// The figures, in the order of the table.
var columns = []struct{ figure, title string }{
	{"bytes", "bytes/object"},
	{"get", "Get ns"},
	{"index", "500 by index us"},
	{"all", "iterate 50k ms"},
	{"one", "update ns, 1 at a time"},
	{"batch", "update ns, by 100"},
	{"writer", "writer/s beside 8 iterating readers"},
}

const readers = 8

// Case is the comparison as a case of the harness: a variant for each candidate.
func Case() harness.Case {
	c := harness.Case{Name: "structures", Repeat: 5}
	for _, candidate := range Candidates {
		c.Variants = append(c.Variants, harness.Variant{Name: candidate.Name, Run: func(_ context.Context, p *harness.Params) (harness.Figures, error) {
			return work(candidate.New(), p), nil
		}})
		for _, col := range columns {
			c.Rows = append(c.Rows, harness.Row{Name: col.title, Layout: candidate.Name, Ours: candidate.Name, Peer: Candidates[0].Name, Figure: col.figure})
		}
	}
	return c
}

// sink keeps the compiler from leaving out reads.
var sink atomic.Int64

func work(c Candidate, p *harness.Params) harness.Figures {
	n := p.Size(50_000, 2_000)
	all := objects(n)
	f := harness.Figures{}
	before := measure.LiveHeap()
	for i := 0; i < n; i += 100 {
		c.Update(all[i:min(i+100, n)])
	}
	f["bytes"] = (measure.LiveHeap() - before) / float64(n)

	const budget = 300 * time.Millisecond
	f["get"] = measure.PerOp(n, budget, func() {
		for i := range n {
			if o := c.Get(all[(i*7919)%n].Key); o != nil {
				sink.Store(int64(len(o.Version)))
			}
		}
	})
	count := 0
	f["index"] = measure.PerOp(namespaces, budget, func() {
		for i := range namespaces {
			c.By(byNamespace, all[i].Namespace, func(*Object) { count++ })
		}
	}) / 1e3
	f["all"] = measure.PerOp(1, budget, func() { c.All(func(*Object) { count++ }) }) / 1e6
	sink.Store(int64(count))

	u, round := updatesOf(all), p.Size(20_000, 2_000)
	f["one"] = perUpdate(c, u, round, 1)
	f["batch"] = perUpdate(c, u, round, 100)
	f["writer"] = besideReaders(c, u, time.Duration(p.Size(2000, 200))*time.Millisecond)
	runtime.KeepAlive(all)
	return f
}

// perUpdate gives the nanoseconds of an update in the median of five rounds, after one
// that does not count. Each round has states of its own: those of the round before would
// move nothing.
func perUpdate(c Candidate, u *updates, n, together int) float64 {
	runtime.GC() // what was measured before leaves no garbage to this
	var rounds []time.Duration
	for range 6 {
		changed := u.some(n)
		began := time.Now()
		for batch := range slices.Chunk(changed, together) {
			c.Update(batch)
		}
		rounds = append(rounds, time.Since(began))
	}
	return float64(measure.Percentile(rounds[1:], 0.5)) / float64(n)
}

// besideReaders gives the updates in a second. The clock stands still while new states
// are made; the readers go on.
func besideReaders(c Candidate, u *updates, during time.Duration) float64 {
	var stop atomic.Bool
	var reading sync.WaitGroup
	for range readers {
		reading.Go(func() {
			for count := 0; !stop.Load(); {
				c.All(func(*Object) { count++ })
				sink.Store(int64(count))
			}
		})
	}
	defer reading.Wait()
	defer stop.Store(true)
	n := 0
	var took time.Duration
	for took < during {
		changed := u.some(10_000)
		began := time.Now()
		for one := range slices.Chunk(changed, 1) {
			if took+time.Since(began) >= during {
				break
			}
			c.Update(one)
			n++
		}
		took += time.Since(began)
	}
	return float64(n) / took.Seconds()
}
