package fleet

import (
	"context"
	"fmt"
	"sync"

	"github.com/mirador-k8s/mirador/source"
)

// gate holds back the requests for objects of a cluster until it is known whether the server is the cluster that the
// disk has.
type gate struct {
	mu      sync.Mutex
	opened  bool
	err     error         // why it could not be found out
	changed chan struct{} // closed when opened or err changes
}

func newGate() *gate { return &gate{changed: make(chan struct{})} }

// open lets all requests pass, now and later.
func (g *gate) open() { g.set(true, nil) }

// fail makes the requests fail until it is known.
func (g *gate) fail(err error) { g.set(false, err) }

func (g *gate) set(opened bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened {
		return
	}
	g.opened, g.err = opened, err
	close(g.changed)
	g.changed = make(chan struct{})
}

// pass waits until the gate is open. It returns an error if it is not known when it will be.
func (g *gate) pass(ctx context.Context) error {
	for {
		g.mu.Lock()
		opened, err, changed := g.opened, g.err, g.changed
		g.mu.Unlock()
		switch {
		case opened:
			return nil
		case err != nil:
			return &source.Error{Reason: source.Unavailable, Err: fmt.Errorf("find out which cluster it is: %w", err)}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
