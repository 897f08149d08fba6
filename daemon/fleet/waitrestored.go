package fleet

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// reading is the reading of a resource's state from disk.
type reading struct {
	ended  chan struct{}
	failed bool // set before ended is closed
}

func newReading() *reading { return &reading{ended: make(chan struct{})} }

// end ends the reading, once.
func (r *reading) end(failed bool) {
	r.failed = failed
	close(r.ended)
}

// waitRestored waits until the state that the disk has of the resource is served, or it is known that it will not be.
// It reports whether it was served.
func (r *Resource) waitRestored(ctx context.Context) bool {
	if r.reading == nil {
		return false // the disk has none
	}
	select {
	case <-r.reading.ended:
		if !r.reading.failed && !r.Synced() {
			r.waitSynced(ctx)
		}
		return !r.reading.failed && r.Synced()
	case <-r.Done():
	case <-ctx.Done():
	}
	return false
}

// waitSynced waits until the resource is synced or is no longer mirrored.
func (r *Resource) waitSynced(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // an informer that has ended would be waited for: it could run again
		select {
		case <-r.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	_ = r.inf.WaitSynced(ctx) // the error is that of ctx
}

// WaitRestored waits, at the start, until what the disk has of some resources is served, or it is known that it cannot
// be. It returns at once for a resource that the disk does not have. It reports whether all were served.
func (c *Cluster) WaitRestored(ctx context.Context, of ...schema.GroupVersionResource) (all bool) {
	if !c.waitBegun(ctx) {
		return false
	}
	all = true
	for _, gvr := range of {
		r, ok := c.Resource(gvr)
		all = ok && r.waitRestored(ctx) && all
	}
	return all
}

// waitBegun waits until it is known which resources the disk has. It returns false if ctx ends first.
func (c *Cluster) waitBegun(ctx context.Context) bool {
	select {
	case <-c.restoring:
		return true
	case <-c.done:
		return false
	case <-ctx.Done():
		return false
	}
}

// WaitRestored waits until everything that the disk has of the members is served, or it is known that it cannot be.
func (f *Fleet) WaitRestored(ctx context.Context) {
	for _, c := range f.Clusters() {
		if !c.waitBegun(ctx) {
			return
		}
		for _, r := range c.resources.Load().sorted {
			r.waitRestored(ctx)
		}
	}
}
