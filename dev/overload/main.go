package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/metrics"
	"text/tabwriter"
	"time"

	"github.com/mirador-k8s/mirador/fanout"
)

func main() {
	var p plan
	flag.IntVar(&p.keys, "objects", 1000, "the number of objects")
	flag.IntVar(&p.rate, "rate", 5000, "events a second")
	seconds := flag.Int("seconds", 20, "the duration of each of the four runs")
	flag.IntVar(&p.quick, "quick", 3, "handlers that return at once")
	flag.DurationVar(&p.takes, "takes", 10*time.Millisecond, "how long the slow handler takes for an event")
	flag.IntVar(&p.payload, "payload", 2000, "the size of an object in bytes")
	flag.Parse()
	p.lasts = time.Duration(*seconds) * time.Second
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := compare(ctx, p); err != nil {
		fmt.Fprintln(os.Stderr, "overload:", err)
		os.Exit(1)
	}
}

// compare runs without and with the slow handler in turn, twice, so that a temporary load of the machine shows.
func compare(ctx context.Context, p plan) error {
	if p.takes <= 0 {
		return errors.New("the slow handler takes no time; set -takes")
	}
	fmt.Printf("%d events/s on %d objects for %s, %d quick handlers; the slow one takes %s an event, so it could "+
		"follow %.0f/s\n",
		p.rate, p.keys, p.lasts, p.quick, p.takes, float64(time.Second)/float64(p.takes))
	alone := p
	alone.takes = 0
	var rows []row
	for n, next := range []plan{alone, p, alone, p} {
		r, err := measured(ctx, next, fmt.Sprintf("run %d of 4", n+1))
		if err != nil {
			return err
		}
		rows = append(rows, r)
	}
	print(rows)
	for _, r := range rows {
		if len(r.faults) > 0 {
			return fmt.Errorf("checks failed: %q", r.faults)
		}
	}
	fmt.Println("every event reached every quick handler in order; the slow one ended with the latest state of every " +
		"object")
	return nil
}

// row is the result of one run.
type row struct {
	slow                 bool
	events               int
	took, late           time.Duration
	p50, p99, worst      time.Duration // the worst of all quick handlers
	backlog              int
	delivered, coalesced uint64
	caughtUp             time.Duration
	peak, atEnd          uint64 // live heap
	faults               []string
}

func measured(ctx context.Context, p plan, title string) (row, error) {
	runtime.GC() // collect the garbage of the previous run
	began := time.Now()
	r, err := begin(ctx, p, nil)
	if err != nil {
		return row{}, err
	}
	out := row{slow: p.takes > 0, events: p.events()}
	samples := 0
	err = r.load(ctx, 100*time.Millisecond, func(st fanout.Stats) {
		out.backlog, out.peak = max(out.backlog, st.Backlog), max(out.peak, liveHeap())
		if samples++; samples%50 == 0 {
			fmt.Printf("%s: %2.0f of %.0f s, live heap %s, waiting for the slow handler %d, coalesced %d\n",
				title, time.Since(began).Seconds(), p.lasts.Seconds(), mib(liveHeap()), st.Backlog, st.Coalesced)
		}
	})
	out.took, out.late = time.Since(began), r.stream.latest
	if err != nil {
		return row{}, errors.Join(err, r.end())
	}
	runtime.GC()
	out.atEnd = liveHeap()
	waited := time.Now()
	if err := r.settle(ctx); err != nil {
		return row{}, errors.Join(err, r.end())
	}
	out.caughtUp = time.Since(waited)
	if r.behind != nil {
		st := r.behind.Stats()
		out.delivered, out.coalesced = st.Delivered, st.Coalesced
	}
	out.faults = r.faults()
	if err := r.end(); err != nil {
		return row{}, err
	}
	for _, q := range r.quick {
		out.p50, out.p99, out.worst = max(out.p50, q.delay(0.5)), max(out.p99, q.delay(0.99)), max(out.worst, q.delay(1))
	}
	return out, nil
}

// liveHeap returns the live heap at the last collection. None is forced while delays are measured: at this rate there
// is one every few seconds.
func liveHeap() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func mib(bytes uint64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

func print(rows []row) {
	fmt.Println()
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w,
		"slow handler\tevents/s\tquick p50\tp99\tworst\tpeak backlog\tdelivered\tcoalesced\tcaught up in\tlive heap, "+
			"peak\tlive heap, end\tsource late by")
	for _, r := range rows {
		name := "none"
		if r.slow {
			name = "one"
		}
		fmt.Fprintf(w, "%s\t%.0f\t%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\t%s\t%s\n", name, float64(r.events)/r.took.Seconds(),
			short(r.p50), short(r.p99), short(r.worst),
			r.backlog, r.delivered, r.coalesced, short(r.caughtUp), mib(r.peak), mib(r.atEnd), short(r.late))
	}
	w.Flush()
	fmt.Println()
}

// short rounds a duration to three digits.
func short(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}
