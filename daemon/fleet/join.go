package fleet

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
)

// Origin says where a cluster comes from.
type Origin struct {
	// Kind is FromFile, FromFolder or FromJoin.
	Kind string
	// Detail is the file and context, or the server's address.
	Detail string
}

// The kinds of origin.
const (
	FromFile   = "kubeconfig"
	FromFolder = "folder"
	FromJoin   = "joined"
)

// Join adds a cluster, before or during Run, and returns at once: what the cluster has
// to say, and whether it answers at all, shows in its Health. The name must be a DNS
// label. The config is copied. Nothing of it is remembered in the state file.
func (f *Fleet) Join(name string, cfg *rest.Config, origin Origin) error {
	_, err := f.join(name, cfg, origin, nil)
	return err
}

// join adds a cluster. remember is called, if there is one, when nothing else can go
// wrong any more; if it fails, so does the join.
func (f *Fleet) join(name string, cfg *rest.Config, origin Origin, remember func() error) (*Cluster, error) {
	fail := func(err error) (*Cluster, error) { return nil, fmt.Errorf("join cluster %q: %w", name, err) }
	if faults := validation.IsDNS1123Label(name); len(faults) > 0 {
		return fail(errors.New("the name is no DNS label; use at most 63 lower-case letters, digits and hyphens, with a " +
			"letter or digit at both ends"))
	}
	f.moves.Lock()
	defer f.moves.Unlock()
	if err := f.admits(name); err != nil {
		return fail(err)
	}
	c, err := newCluster(f, name, cfg, origin)
	if err != nil {
		return fail(err)
	}
	if remember != nil {
		if err := remember(); err != nil {
			return fail(err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clusters[name] = c
	if f.phase == running {
		f.start(c)
	}
	f.tellLocked()
	return c, nil
}

// admits says whether a cluster of this name could join now.
func (f *Fleet) admits(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.phase == ended || f.phase == running && f.ctx.Err() != nil:
		return ErrEnded
	case f.clusters[name] != nil:
		return ErrExists
	}
	return nil
}

// Leave removes a cluster and has the state file forget it. It waits until the
// cluster's informers have ended and their memory is free; if ctx ends first, that goes
// on, and the error says what is still running.
func (f *Fleet) Leave(ctx context.Context, name string) error {
	c, ok := f.Cluster(name)
	if !ok {
		return fmt.Errorf("leave cluster %q: %w", name, ErrUnknown)
	}
	return f.remove(ctx, c)
}

// remove takes one certain cluster out: another one of its name stays.
func (f *Fleet) remove(ctx context.Context, c *Cluster) error {
	if err := f.forget(c); err != nil {
		return fmt.Errorf("leave cluster %q: %w", c.name, err)
	}
	if c.cancel == nil { // it was never started
		return c.end()
	}
	c.cancel()
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("leave cluster %q: it has left, but not all of it has ended: %w", c.name, ctx.Err())
	}
}

// forget takes a cluster out of the set and out of the state file.
func (f *Fleet) forget(c *Cluster) error {
	f.moves.Lock()
	defer f.moves.Unlock()
	if now, ok := f.Cluster(c.name); !ok || now != c {
		return ErrUnknown
	}
	if f.state != nil && c.origin.Kind == FromJoin {
		if err := f.state.remove(c.name); err != nil {
			return errors.Join(errors.New("it stays, because it would be back after a restart"), err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.clusters, c.name)
	f.tellLocked()
	return nil
}
