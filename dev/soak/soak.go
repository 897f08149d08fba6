package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/store"
)

// plan describes a soak.
type plan struct {
	cfg    *rest.Config
	lasts  time.Duration // how long the pods are changed
	every  time.Duration // how often a sample is taken
	guests int           // how many temporary handlers there are at a time
	stay   time.Duration // the longest stay of a temporary handler
	// churn changes pods until the time is over, and then returns.
	churn func(ctx context.Context) error
	out   io.Writer
}

// outcome is the result of a soak.
type outcome struct {
	Samples []sample   `json:"samples"`
	Flat    []flatness `json:"flat"`
	// Wrong describes every failed check except flatness.
	Wrong    []string `json:"wrong"`
	Problems []string `json:"problems"` // what the informers reported; none is expected

	Before, After struct {
		Goroutines, Files int
	}
}

// patience is how long the end of a soak may take: the slow handlers have to catch up with thousands of pods.
const patience = 10 * time.Minute

// soak runs the plan. Its error means that it could not run.
func (p plan) soak(ctx context.Context) (out outcome, err error) {
	client, err := rest.HTTPClientFor(p.cfg)
	if err != nil {
		return out, fmt.Errorf("make a client: %w", err)
	}
	if out.Before.Files, err = openFiles(); err != nil {
		return out, err
	}
	out.Before.Goroutines = runtime.NumGoroutine()
	run, stop := context.WithCancel(ctx)
	defer stop()
	var mirrors []*mirror
	began := time.Now()
	for _, layout := range []store.Layout{store.Live, store.Packed} {
		m, err := startMirror(run, p.cfg, client, layout)
		if err != nil {
			return out, err
		}
		mirrors = append(mirrors, m)
	}
	err = p.follow(run, mirrors, &out)
	if err == nil {
		err = p.compare(run, client, mirrors, &out)
	}
	for _, m := range mirrors {
		if h := m.inf.Health().Reflector; h.Watches > explained(h, time.Since(began)) {
			out.Wrong = append(out.Wrong,
				fmt.Sprintf("the %s mirror opened %d watches, but the ends of watches explain %d: %d were closed for silence, "+
					"errors %v",
					m.inf.Name(), h.Watches, explained(h, time.Since(began)), h.Silences, h.Errors))
		}
	}
	stop()
	for _, m := range mirrors {
		err = errors.Join(err, <-m.ended)
		out.Problems = append(out.Problems, m.firstProblems()...)
	}
	if err == nil {
		err = out.leaks(client.Transport)
	}
	return out, err
}

// follow waits for the mirrors, lets the pods change and handlers join and leave, and takes samples until the changes
// end.
func (p plan) follow(ctx context.Context, mirrors []*mirror, out *outcome) error {
	for _, m := range mirrors {
		if err := m.inf.WaitSynced(ctx); err != nil {
			return err
		}
	}
	g := &guests{mirrors: mirrors, stay: p.stay}
	visiting, leave := context.WithCancel(ctx)
	var places sync.WaitGroup
	defer func() {
		leave()
		places.Wait()
		out.Wrong = append(out.Wrong, g.odd...)
	}()
	for n := range p.guests {
		places.Go(func() { g.host(visiting, n) })
	}
	changed := make(chan error, 1)
	places.Go(func() { changed <- p.churn(visiting) })
	began, tick := time.Now(), time.NewTicker(p.every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s, err := takeSample(began, mirrors, g)
			if err != nil {
				return err
			}
			var last sample
			if n := len(out.Samples); n > 0 {
				last = out.Samples[n-1]
			}
			s.print(p.out, p.lasts, last)
			out.Samples = append(out.Samples, s)
		case err := <-changed:
			if err != nil {
				return fmt.Errorf("change the pods: %w", err)
			}
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// compare compares the mirrors with the server, and the permanent handlers with the mirrors. The pods no longer
// change.
func (p plan) compare(ctx context.Context, client *http.Client, mirrors []*mirror, out *outcome) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	fmt.Fprintln(p.out, "the changes have ended: comparing with the server, and waiting for the slow handlers")
	for _, m := range mirrors {
		if err := p.compareList(ctx, client, m, out); err != nil {
			return err
		}
		m.settle(ctx)
		have := m.versions()
		for name, w := range m.lasting {
			view, odd := w.sums()
			if odd != "" {
				out.Wrong = append(out.Wrong, fmt.Sprintf("the %s handler of the %s mirror: %s", name, m.inf.Name(), odd))
			}
			for _, d := range differences(view, have) {
				out.Wrong = append(out.Wrong, fmt.Sprintf("the %s handler of the %s mirror differs from it: %s",
					name, m.inf.Name(), d))
			}
		}
	}
	return nil
}

// compareList compares a mirror with a consistent list. The server may still process changes after their client has
// ended: if the mirror is ahead of the list, it is compared with another list, a few times.
func (p plan) compareList(ctx context.Context, client *http.Client, m *mirror, out *outcome) error {
	for attempt := 1; ; attempt++ {
		want, version, err := listed(ctx, p.cfg, client)
		if err != nil {
			return err
		}
		if len(differences(m.versions(), want)) == 0 {
			return nil // without waiting for a bookmark if the last change was of another resource
		}
		if err := m.inf.WaitVersion(ctx, version); err != nil {
			return err
		}
		snap := m.inf.Snapshot()
		wrong := differences(versionsOf(snap), want)
		if len(wrong) == 0 {
			return nil
		}
		if ahead := version.Before(snap.Version()); ahead && attempt < 10 {
			continue
		}
		for _, d := range wrong {
			out.Wrong = append(out.Wrong, fmt.Sprintf("the %s mirror at %s differs from the list at %s: %s", m.inf.Name(),
				snap.Version(), version, d))
		}
		return nil
	}
}

// leaks records what was left behind. Connections take a moment to become idle, and only idle ones can be closed.
func (o *outcome) leaks(transport http.RoundTripper) error {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		utilnet.CloseIdleConnectionsFor(transport)
		files, err := openFiles()
		if err != nil {
			return err
		}
		o.After.Files, o.After.Goroutines = files, runtime.NumGoroutine()
		if o.After.Files <= o.Before.Files && o.After.Goroutines <= o.Before.Goroutines {
			return nil
		}
		if time.Now().After(deadline) {
			break
		}
	}
	if o.After.Files > o.Before.Files {
		o.Wrong = append(o.Wrong, fmt.Sprintf("%d files are open after the stop; before the start there were %d: %s",
			o.After.Files, o.Before.Files, strings.Join(fileNames(), ", ")))
	}
	if o.After.Goroutines > o.Before.Goroutines {
		stacks := make([]byte, 64<<10)
		o.Wrong = append(o.Wrong, fmt.Sprintf("%d goroutines run after the stop; before the start there were %d:\n%s",
			o.After.Goroutines, o.Before.Goroutines, stacks[:runtime.Stack(stacks, true)]))
	}
	return nil
}
