package server

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

// awaitDisk waits, after the start, until what the disk has for a request is served. If clients were refused until
// then, all those that a restart has cut off would come again and again, and delay it.
//
// The time of an answer must not tell a user whether there is a cluster that is hidden from it: the answer then comes
// when it would come if there was none, which is when the rights in all clusters are known.
func (s *Server) awaitDisk(r *http.Request, t *target) error {
	left := time.Until(s.started.Add(stateTimeout))
	if left <= 0 || t.resource == "" && isHealthPath(t.rest) {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), left)
	defer cancel()
	defer context.AfterFunc(s.fleetHubs.ctx, cancel)() // the daemon stops
	held := s.waiting.open(clientOf(r))
	defer held.close()
	wait := func(done <-chan struct{}) error {
		select {
		case <-done:
			return nil
		default:
		}
		if err := held.set(1); err != nil {
			return err
		}
		select {
		case <-done:
		case <-ctx.Done():
		}
		return nil
	}
	clusters := s.fleet.Clusters()
	if c, ok := s.fleet.Cluster(t.cluster); ok {
		if err := wait(s.restoredRights(c)); err != nil {
			return err
		}
		if s.mayKnow(r, t.cluster) || s.seesSomeOf(r, t, c) {
			return wait(s.restoredResource(c, t.gvr()))
		}
	}
	for _, c := range clusters {
		if err := wait(s.restoredRights(c)); err != nil {
			return err
		}
	}
	for _, c := range clusters {
		if t.fleet && s.seesSomeOf(r, t, c) {
			if err := wait(s.restoredResource(c, t.gvr())); err != nil {
				return err
			}
		}
	}
	return nil
}

// seesSomeOf reports whether the user of a request may see anything of its resource in a cluster.
func (s *Server) seesSomeOf(r *http.Request, t *target, c *fleet.Cluster) bool {
	return slices.ContainsFunc([]string{"get", "list", "watch"}, func(verb string) bool {
		see, err := s.opts.Authorizer.Visible(r.Context(), userOf(r), c.Name(), verb, t.groupResource(), true)
		return err == nil && (see == nil || !see.Empty())
	})
}

// restoredRights returns a channel that is closed when the rights in a cluster are those that the disk has, and it is
// known which resources the disk has.
func (s *Server) restoredRights(c *fleet.Cluster) <-chan struct{} {
	return s.restored.done(s.fleetHubs.ctx, c, func(ctx context.Context) {
		c.WaitRestored(ctx)
		s.opts.Authorizer.WaitRestored(ctx, c)
	})
}

// restoredResource returns a channel that is closed when what the disk has of a resource is served.
func (s *Server) restoredResource(c *fleet.Cluster, gvr schema.GroupVersionResource) <-chan struct{} {
	res, ok := c.Resource(gvr)
	if !ok {
		return s.restoredRights(c)
	}
	return s.restored.done(s.fleetHubs.ctx, res, func(ctx context.Context) { c.WaitRestored(ctx, gvr) })
}

// sharedWaits makes requests that wait for the same thing share one wait. Waits end at a time.
type sharedWaits struct {
	until time.Time

	mu    sync.Mutex
	begun map[any]chan struct{} // by what is waited for
	ended bool
	work  sync.WaitGroup
}

// done returns a channel that is closed when what is waited for is there, the time is over or ctx ends.
func (w *sharedWaits) done(ctx context.Context, what any, wait func(context.Context)) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	done := w.begun[what]
	if done != nil {
		return done
	}
	done = make(chan struct{})
	if w.ended || ctx.Err() != nil {
		close(done)
		return done
	}
	if w.begun == nil {
		w.begun = map[any]chan struct{}{}
	}
	w.begun[what] = done
	w.work.Go(func() {
		defer close(done)
		ctx, cancel := context.WithDeadline(ctx, w.until)
		defer cancel()
		wait(ctx)
	})
	return done
}

// end forgets everything when the time is over.
func (w *sharedWaits) end() {
	w.mu.Lock()
	w.ended, w.begun = true, nil
	w.mu.Unlock()
	w.work.Wait()
}
