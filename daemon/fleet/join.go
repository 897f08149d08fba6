package fleet

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
)

// Origin describes where a cluster comes from.
type Origin struct {
	// Kind is FromFile, FromFolder, FromJoin, FromHome, FromSecret or FromProfile.
	Kind string
	// Detail is the file and context, the server's address, or the namespace and name of an object of the home cluster.
	Detail string
}

// The kinds of origin.
const (
	FromFile    = "kubeconfig"
	FromFolder  = "folder"
	FromJoin    = "joined"
	FromHome    = "home"
	FromSecret  = "secret"
	FromProfile = "profile"
)

// IsOperators reports whether only the operator of the daemon can choose the address of clusters of this origin.
func (o Origin) IsOperators() bool {
	return o.Kind == FromFile || o.Kind == FromFolder || o.Kind == FromHome
}

// Join adds a cluster, before or during Run. It returns at once; whether the cluster
// answers is in its Health. The name must be a DNS label. The config is copied. The cluster
// is not written to the state file.
func (f *Fleet) Join(name string, cfg *rest.Config, origin Origin) error {
	_, err := f.join(name, cfg, origin, nil)
	return err
}

// join adds a cluster. save, if it is not nil, is called after all checks; if it fails, the
// cluster does not join.
func (f *Fleet) join(name string, cfg *rest.Config, origin Origin, save func() error) (*Cluster, error) {
	fail := func(err error) (*Cluster, error) { return nil, fmt.Errorf("join cluster %q: %w", name, err) }
	if faults := validation.IsDNS1123Label(name); len(faults) > 0 {
		return fail(errors.New("the name is not a DNS label; use at most 63 lower-case letters, digits and hyphens, " +
			"with a letter or digit at both ends"))
	}
	f.membership.Lock()
	defer f.membership.Unlock()
	if err := f.admits(name); err != nil {
		return fail(err)
	}
	c, err := newCluster(f, name, cfg, origin)
	if err != nil {
		return fail(err)
	}
	if save != nil {
		if err := save(); err != nil {
			return fail(err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clusters[name] = c
	if f.phase == running {
		f.start(c)
	}
	f.notifyLocked()
	return c, nil
}

// admits returns an error if no cluster of this name can join now.
func (f *Fleet) admits(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.phase == ended || f.phase == running && f.ctx.Err() != nil:
		return errFleetEnded
	case f.clusters[name] != nil:
		return ErrExists
	}
	return nil
}

// Leave removes a cluster, also from the state file. It waits until the cluster's
// informers have ended and their memory is free. If ctx ends first, Leave returns an error
// and the cluster continues to stop.
func (f *Fleet) Leave(ctx context.Context, name string) error {
	c, ok := f.Cluster(name)
	if !ok {
		return fmt.Errorf("leave cluster %q: %w", name, ErrUnknown)
	}
	return f.remove(ctx, c)
}

// remove removes this cluster, and not another one of the same name.
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

// forget removes a cluster from the set and from the state file.
func (f *Fleet) forget(c *Cluster) error {
	f.membership.Lock()
	defer f.membership.Unlock()
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
	f.notifyLocked()
	return nil
}
