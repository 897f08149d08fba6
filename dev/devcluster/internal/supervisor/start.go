package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mirador-k8s/mirador/dev/devcluster/internal/part"
)

// start starts all parts and returns when the cluster works.
func (c *Cluster) start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := ""
	if c.entry.Temporary {
		kept = " (removed at the end)"
	}
	c.say("starting cluster %q; data and logs in %s%s", c.Name, c.data, kept)
	c.say("waiting for etcd")
	if _, err := c.launch(part.Etcd); err != nil {
		return err
	}
	if err := c.waitEtcd(ctx); err != nil {
		return err
	}
	if err := c.startAPIServer(ctx); err != nil {
		return err
	}
	c.say("the API server is ready at %s", c.url())
	if c.Controllers {
		if err := c.startWorkers(ctx); err != nil {
			return err
		}
	}
	c.entry.Ready = true
	if err := c.claim.Update(c.entry); err != nil {
		return err
	}
	c.say("ready")
	fmt.Fprintf(c.Out, `
  export KUBECONFIG=%s
  devcluster kubectl get pods -A
  devcluster down %s        (or Ctrl-C here)

`, c.data.kubeconfig(), c.Name)
	return nil
}

// startAPIServer finds a port and starts the API server on it. Another process may take the port before the server
// binds it; then another port is tried.
func (c *Cluster) startAPIServer(ctx context.Context) error {
	const attempts = 5
	for attempt := 1; ; attempt++ {
		port, err := freePort(c.state.Port)
		if err != nil {
			return err
		}
		c.state.Port = port
		if err := c.data.save(c.state); err != nil {
			return fmt.Errorf("remember the API server's port: %w", err)
		}
		if err := c.writeKubeconfigs(); err != nil {
			return err
		}
		c.entry.Server, c.entry.Kubeconfig = c.url(), c.data.kubeconfig()
		if err := c.claim.Update(c.entry); err != nil {
			return err
		}
		c.say("waiting for the API server")
		err = c.launchAPIServer(ctx)
		var lost *portLostError
		if attempt == attempts || !errors.As(err, &lost) {
			return err
		}
		c.say("port %d was taken by another process, trying another", port)
		c.state.Port = 0
	}
}

// portLostError means that the API server could not bind its port.
type portLostError struct{ error }

func (e *portLostError) Unwrap() error { return e.error }

// launchAPIServer starts the API server on the current port and waits until it is ready. If the server ends before
// that, only this function reports it.
func (c *Cluster) launchAPIServer(ctx context.Context) error {
	ch, err := startChild(c.spawner, part.APIServer, c.flags(part.APIServer), c.data.log(part.APIServer), c.alive)
	if err != nil {
		return err
	}
	c.children[part.APIServer] = ch
	err = c.waitAPIServer(ctx, ch)
	if errors.Is(err, errEnded) {
		err = c.crashError(ch)
		if strings.Contains(err.Error(), "address already in use") {
			return &portLostError{err}
		}
		return err
	}
	c.watch(ch)
	return err
}

// startWorkers starts the three clients of the API server, creates the nodes meanwhile, and waits until everything
// works.
func (c *Cluster) startWorkers(ctx context.Context) error {
	c.say("waiting for the default service account and %d nodes", c.Nodes)
	for _, name := range []part.Name{part.ControllerManager, part.KWOK, part.Scheduler} {
		if _, err := c.launch(name); err != nil {
			return err
		}
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	if err := createNodes(ctx, client, c.Nodes); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return err
	}
	return c.waitWorking(ctx, client)
}

// launch starts a part whose unexpected end stops the cluster.
func (c *Cluster) launch(name part.Name) (*child, error) {
	ch, err := startChild(c.spawner, name, c.flags(name), c.data.log(name), c.alive)
	if err != nil {
		return nil, err
	}
	c.children[name] = ch
	c.watch(ch)
	return ch, nil
}

// watch stops the cluster if the child ends without being asked to.
func (c *Cluster) watch(ch *child) {
	go func() {
		<-ch.done
		if ch.unexpected() {
			c.cancel(c.crashError(ch))
		}
	}()
}

// How long a part may take to end after it was asked to.
const (
	workerGrace    = 3 * time.Second
	apiServerGrace = 5 * time.Second
	etcdGrace      = 5 * time.Second
)

// stop ends all parts: first the clients of the API server, then the API
// server, then etcd.
func (c *Cluster) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.children) > 0 {
		c.say("stopping cluster %q", c.Name)
	}
	var workers sync.WaitGroup
	for _, name := range []part.Name{part.KWOK, part.Scheduler, part.ControllerManager} {
		workers.Go(func() { c.stopPart(name, workerGrace) })
	}
	workers.Wait()
	c.stopPart(part.APIServer, apiServerGrace)
	c.stopPart(part.Etcd, etcdGrace)
	_ = os.Remove(c.etcdSocket) // a killed etcd does not remove it
}

// stopPart stops a part if it is running.
func (c *Cluster) stopPart(name part.Name, grace time.Duration) {
	if ch := c.children[name]; ch != nil {
		ch.stop(grace, c.Hurry)
	}
}
