package daemon

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/mirador-k8s/mirador/dev/bench/measure"
	"github.com/mirador-k8s/mirador/dev/bench/program"
)

// Change sends changes of pods at a rate, and returns the daemon's processor time for each.
func (f *Fleet) Change(ctx context.Context, n, rate int) (time.Duration, error) {
	plan, err := f.prepare(n, 10)
	if err != nil {
		return 0, err
	}
	before := measure.CPUOf(f.cmd.Process.Pid)
	began := time.Now()
	for i, s := range plan.sends {
		if wait := time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(rate))); wait > 0 {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		f.sims[s.place.cluster].Send(s.change)
	}
	time.Sleep(time.Second) // until the last changes are stored and written
	return (measure.CPUOf(f.cmd.Process.Pid) - before) / time.Duration(n), nil
}

// Restarted describes a start after a kill.
type Restarted struct {
	// Served is the time from the start until every pod is served.
	Served time.Duration
	// States is how many times a cluster was read again.
	States int
	// Clients is what became of the watches of clients.
	Clients Resumed
}

// KillAndRestart kills the daemon while 500 changes a second are sent to it and to a number of clients' watches, and
// starts it again.
func (f *Fleet) KillAndRestart(ctx context.Context, dir string, changes, clients int) (r Restarted, err error) {
	plan, err := f.prepare(changes, 10)
	if err != nil {
		return r, err
	}
	watching, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	open, err := f.openClients(watching, plan, clients, &work)
	if err != nil {
		return r, err
	}
	time.Sleep(time.Second) // until all watches are open
	half := make(chan struct{})
	work.Go(func() {
		for i, s := range plan.sends {
			if i == len(plan.sends)/2 {
				close(half)
			}
			select {
			case <-time.After(2 * time.Millisecond):
			case <-watching.Done():
				return
			}
			f.sims[s.place.cluster].Send(s.change)
		}
	})
	<-half
	binary, err := program.Find("MIRADOR", "mirador")
	if err != nil {
		return r, err
	}
	if err := f.cmd.Process.Kill(); err != nil {
		return r, fmt.Errorf("kill the daemon: %w", err)
	}
	_ = f.cmd.Wait() // it was killed
	f.client.CloseIdleConnections()
	before := f.states()
	began := time.Now()
	if err := f.startDaemon(binary, dir, filepath.Join(dir, "clusters")); err != nil {
		return r, err
	}
	for have := 0; have < f.size.Pods; {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		if have, err = f.mirrored(ctx); err != nil {
			return r, err
		}
		time.Sleep(5 * time.Millisecond)
	}
	r.Served = time.Since(began)
	if err := f.waitSynced(ctx); err != nil {
		return r, err
	}
	time.Sleep(2 * time.Second) // until every watch has resumed
	r.States = f.states() - before
	r.Clients = resumed(ctx, plan, open, began)
	return r, nil
}

func (f *Fleet) states() (n int) {
	for _, s := range f.sims {
		n += s.States()
	}
	return n
}
