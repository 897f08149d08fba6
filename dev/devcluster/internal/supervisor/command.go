package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/mirador-k8s/mirador/dev/devcluster/internal/workload"
)

// commandGrace is how long the user's command may take to end by itself.
const commandGrace = 5 * time.Second

// errCommandEnded is the cause when the user's command has ended successfully.
var errCommandEnded = errors.New("the command has ended")

// serve runs the workload and the user's command from ready to the end. It returns why the cluster ends, after both
// have ended.
func (c *Cluster) serve(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if c.Workload {
		client, err := c.client()
		if err != nil {
			return err
		}
		wg.Go(func() { workload.Run(ctx, client, c.say) })
	}
	if len(c.Command) > 0 {
		if err := c.runCommand(ctx); err != nil {
			return err
		}
		if ctx.Err() == nil {
			return errCommandEnded
		}
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// runCommand runs the user's command until it ends or ctx does. The command shares our terminal and process group, so
// it also receives a Ctrl-C.
func (c *Cluster) runCommand(ctx context.Context) error {
	cmd := exec.Command(c.Command[0], c.Command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.data.kubeconfig())
	cmd.SysProcAttr = childAttributes()
	cmd.SysProcAttr.Setpgid = false
	if err := c.spawner.start(cmd); err != nil {
		return fmt.Errorf("run %s: %w", c.Command[0], err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		// A Ctrl-C ends both processes, in any order.
		if err != nil && ctx.Err() == nil && !interrupted(err) {
			return fmt.Errorf("%s ended: %w", c.Command[0], err)
		}
		return nil
	case <-ctx.Done():
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(commandGrace)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		_ = cmd.Process.Kill()
		<-done
	case <-c.Hurry:
		_ = cmd.Process.Kill()
		<-done
	}
	return nil
}

// interrupted reports whether a process was ended by Ctrl-C.
func interrupted(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGINT
}
