package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/mirador-k8s/mirador/dev/devcluster/internal/part"
	"github.com/mirador-k8s/mirador/dev/devcluster/internal/pki"
	"github.com/mirador-k8s/mirador/dev/devcluster/internal/registry"
)

// Options describe the cluster to run.
type Options struct {
	Name        string
	Nodes       int
	Controllers bool   // false: etcd and the API server only
	Data        string // empty: a temporary folder, removed at the end
	Registry    *registry.Registry
	Out         io.Writer       // receives the progress
	Hurry       <-chan struct{} // closed: stop asking children to end, kill them
	Workload    bool            // run a small changing workload in it
	// Command, if set, runs once the cluster is ready, with KUBECONFIG set. The cluster ends when the command does.
	Command []string
}

// Cluster is one running control plane.
type Cluster struct {
	Options
	claim      *registry.Claim
	entry      registry.Entry
	data       dataDir
	state      state
	etcdSocket string
	spawner    *spawner
	alive      *os.File // read end of the pipe that stays open as long as this process runs
	cancel     context.CancelCauseFunc

	// mu is held through every change of the children: start, stop, a fault.
	mu       sync.Mutex
	children map[part.Name]*child

	outMu sync.Mutex // progress is written by the start and by faults
}

// errStopped is the cause when `devcluster down` ends a cluster.
var errStopped = errors.New("stopped by devcluster down")

// Run starts a cluster, runs it until ctx ends, `devcluster down` is called or a part of it fails, and stops it. An
// error before anything was started is an EnvironmentError.
func Run(ctx context.Context, o Options) (err error) {
	c := &Cluster{Options: o, spawner: newSpawner(), children: map[part.Name]*child{}}
	ctx, c.cancel = context.WithCancelCause(ctx)
	defer c.cancel(nil)

	unlock, err := c.prepare()
	if err != nil {
		return err
	}
	defer unlock()

	control, err := c.listen(ctx)
	if err != nil {
		return err
	}
	defer control.Close()

	err = c.start(ctx)
	broken := true // keep the logs
	if err == nil {
		err = c.serve(ctx)
		broken = ctx.Err() != nil
	}
	c.cancel(err)
	c.stop()
	if errors.Is(err, errStopped) || errors.Is(err, errCommandEnded) || errors.Is(err, context.Canceled) {
		c.removeTemporary()
		c.say("cluster %q is down", c.Name)
		return nil
	}
	if !broken {
		c.removeTemporary() // only the user's command failed
		return err
	}
	if c.entry.Temporary {
		err = fmt.Errorf("%w\n  the data folder %s is kept for its logs: remove it when you are done", err, c.data)
	}
	return err
}

// prepare claims the name and creates the data folder with everything in it that the parts need. The returned function
// undoes this.
func (c *Cluster) prepare() (func(), error) {
	c.entry = registry.Entry{
		Name: c.Name, PID: os.Getpid(), Started: time.Now(),
		Nodes: c.Nodes, Controllers: c.Controllers, Data: c.Data,
	}
	if c.Data == "" {
		// The name is in the registry before the folder exists, so that after a kill at any moment the next command can
		// remove everything.
		c.entry.Temporary = true
		c.entry.Data = filepath.Join(os.TempDir(), fmt.Sprintf("devcluster-%s-%s", c.Name, randomSuffix()))
	} else if abs, err := filepath.Abs(c.Data); err == nil {
		c.entry.Data = abs
	}
	claim, err := c.Registry.Claim(c.entry)
	if err != nil {
		return nil, &EnvironmentError{err}
	}
	c.claim = claim
	c.etcdSocket = c.Registry.EtcdSocket(c.Name)

	data, st, lock, err := openDataDir(c.entry.Data)
	if err != nil {
		c.claim.Release()
		return nil, err
	}
	c.data, c.state = data, st
	release := func() {
		lock.Close()
		c.claim.Release()
	}
	if err := c.fill(); err != nil {
		c.removeTemporary()
		release()
		return nil, &EnvironmentError{err}
	}
	return release, nil
}

// fill writes the files that the parts need into the data folder.
func (c *Cluster) fill() error {
	if err := pki.Ensure(c.data.pki(), serviceIP); err != nil {
		return err
	}
	if err := c.data.writeAuditPolicy(); err != nil {
		return fmt.Errorf("write the audit policy: %w", err)
	}
	// The write end is never used and never closed: the kernel closes it when this process ends, which ends the children.
	alive, keep, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make the pipe to the children: %w", err)
	}
	c.alive = alive
	keepOpen = append(keepOpen, keep)
	return nil
}

// keepOpen keeps files from being closed by the garbage collector.
var keepOpen []*os.File

// removeTemporary removes the data folder if it is a temporary one.
func (c *Cluster) removeTemporary() {
	if !c.entry.Temporary {
		return
	}
	if err := os.RemoveAll(string(c.entry.Data)); err != nil {
		c.say("could not remove the temporary folder: %v", err)
	}
}

// say prints progress with the time since the start.
func (c *Cluster) say(format string, args ...any) {
	c.outMu.Lock()
	defer c.outMu.Unlock()
	fmt.Fprintf(c.Out, "%6.1fs  %s\n", time.Since(c.entry.Started).Seconds(), fmt.Sprintf(format, args...))
}

// crashError describes the unexpected end of a child.
func (c *Cluster) crashError(ch *child) error {
	ch.mu.Lock()
	how := ch.err
	ch.mu.Unlock()
	end := "exit status 0"
	if how != nil {
		end = how.Error()
	}
	path := c.data.log(ch.part)
	var b strings.Builder
	fmt.Fprintf(&b, "%s ended unexpectedly (%s), so the cluster is stopped", ch.part, end)
	for _, line := range lastLines(path) {
		fmt.Fprintf(&b, "\n  | %s", line)
	}
	fmt.Fprintf(&b, "\n  its full log: %s", path)
	return errors.New(b.String())
}
