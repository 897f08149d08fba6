package supervisor

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/mirador-k8s/mirador/dev/devcluster/internal/part"
)

// child is one started process of a part.
type child struct {
	part part.Name
	cmd  *exec.Cmd
	// done closes when the process has ended and been waited for.
	done chan struct{}

	mu       sync.Mutex
	expected bool // the supervisor has asked it to end
	paused   bool
	err      error // how it ended; valid after done
}

// startChild starts one part and appends its output to logPath. alive is the read end of the pipe that stays open as
// long as the supervisor runs.
func startChild(s *spawner, name part.Name, flags []string, logPath string, alive *os.File) (*child, error) {
	log, err := os.OpenFile(logPath, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer log.Close()
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start %s: find the devcluster executable: %w", name, err)
	}
	cmd := &exec.Cmd{
		Path:        exe,
		Args:        name.Command(flags),
		Stdout:      log,
		Stderr:      log,
		ExtraFiles:  []*os.File{alive},
		Env:         append(os.Environ(), part.SupervisorVariable+"="+strconv.Itoa(os.Getpid())),
		SysProcAttr: childAttributes(),
	}
	if err := s.start(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	c := &child{part: name, cmd: cmd, done: make(chan struct{})}
	go func() {
		err := cmd.Wait()
		c.mu.Lock()
		c.err = err
		c.mu.Unlock()
		close(c.done)
	}()
	return c, nil
}

// ended reports whether the process has ended.
func (c *child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// unexpected reports whether the process ended without being asked to.
func (c *child) unexpected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.expected
}

// signal sends sig unless the process has been waited for.
func (c *child) signal(sig syscall.Signal) error {
	if c.ended() {
		return fmt.Errorf("%s is not running", c.part)
	}
	if err := c.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("signal %s: %w", c.part, err)
	}
	return nil
}

// pause stops the process; resume continues it.
func (c *child) pause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused {
		return fmt.Errorf("%s is already paused: resume it with `resume`", c.part)
	}
	if err := c.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	c.paused = true
	return nil
}

func (c *child) resume() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.paused {
		return fmt.Errorf("%s is not paused", c.part)
	}
	if err := c.signal(syscall.SIGCONT); err != nil {
		return err
	}
	c.paused = false
	return nil
}

// kill kills the process and waits until it has ended.
func (c *child) kill() {
	c.mu.Lock()
	c.expected = true
	c.mu.Unlock()
	_ = c.signal(syscall.SIGKILL) // an error means that it has ended already
	<-c.done
}

// stop asks the process to end, waits for at most grace (or until hurry
// closes), then kills it.
func (c *child) stop(grace time.Duration, hurry <-chan struct{}) {
	c.mu.Lock()
	c.expected = true
	paused := c.paused
	c.mu.Unlock()
	_ = c.signal(syscall.SIGTERM)
	if paused {
		_ = c.signal(syscall.SIGCONT)
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
		c.kill()
	case <-hurry:
		c.kill()
	}
}

// isPaused reports whether the process was paused and not resumed.
func (c *child) isPaused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.paused
}
