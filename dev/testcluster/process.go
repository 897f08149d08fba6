package testcluster

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is the running `devcluster up`.
type process struct {
	cmd *exec.Cmd
	// stdin is held open and never written to: the cluster ends when it closes,
	// which the kernel does when this process ends.
	stdin *os.File
	// output is unlinked, so it is removed when the last process closes it.
	output *os.File

	mu    sync.Mutex
	ended error // how the process ended; set by check
}

// launch starts the binary. It does not inherit standard output and standard error, because `go test` would wait until
// they are closed.
func launch(binary string, args []string) (*process, error) {
	output, err := os.CreateTemp("", "testcluster-*.log")
	if err != nil {
		return nil, fmt.Errorf("make a file for the cluster's output: %w", err)
	}
	if err := os.Remove(output.Name()); err != nil {
		return nil, fmt.Errorf("unlink the cluster's output: %w", err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make the cluster's standard input: %w", err)
	}
	defer read.Close()
	cmd := exec.Command(binary, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = read, output, output
	// The cluster has its own process group: a Ctrl-C ends the test binary, and that ends the cluster.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the cluster: %w", err)
	}
	return &process{cmd: cmd, stdin: write, output: output}, nil
}

const (
	readyTimeout = 3 * time.Minute
	readyPoll    = 50 * time.Millisecond
	// readyMark is what `devcluster up` prints when the cluster is ready.
	readyMark = "export KUBECONFIG="
)

// waitReady returns the path of the kubeconfig once the cluster is ready.
func (p *process) waitReady() (string, error) {
	for deadline := time.Now().Add(readyTimeout); ; time.Sleep(readyPoll) {
		if err := p.check(); err != nil {
			return "", err
		}
		if _, rest, ok := strings.Cut(p.said(), readyMark); ok {
			if path, _, ok := strings.Cut(rest, "\n"); ok {
				return path, nil
			}
		}
		if time.Now().After(deadline) {
			return "", fmt.Errorf("not ready after %v; its output:\n%s", readyTimeout, p.said())
		}
	}
}

// said returns the output so far.
func (p *process) said() string {
	b, err := io.ReadAll(io.NewSectionReader(p.output, 0, 1<<20))
	if err != nil {
		return fmt.Sprintf("(its output cannot be read: %v)", err)
	}
	return string(b)
}

// check returns an error if the process has ended. It does not wait, because a waiting goroutine would look like a
// leak to every test.
func (p *process) check() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		return p.ended
	}
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WNOHANG, nil)
	if err == nil && pid == 0 || errors.Is(err, syscall.EINTR) {
		return nil
	}
	p.ended = fmt.Errorf("it ended with status %d; its output:\n%s", status.ExitStatus(), p.said())
	return p.ended
}

// end closes the standard input of the process, and waits until the process has ended.
func (p *process) end() error {
	if err := p.stdin.Close(); err != nil {
		return fmt.Errorf("close the cluster's standard input: %w", err)
	}
	for deadline := time.Now().Add(readyTimeout); p.check() == nil; time.Sleep(readyPoll) {
		if time.Now().After(deadline) {
			return fmt.Errorf("it has not ended after %v; its output:\n%s", readyTimeout, p.said())
		}
	}
	return p.output.Close()
}

// module is the first line of the go.mod at the root of the repository.
const module = "module github.com/mirador-k8s/mirador\n"

// findBinary returns $DEVCLUSTER, or bin/devcluster at the root of the repository.
func findBinary() (string, error) {
	path := os.Getenv("DEVCLUSTER")
	if path == "" {
		root, err := findRoot()
		if err != nil {
			return "", err
		}
		path = filepath.Join(root, "bin", "devcluster")
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("there is no %s: run `make devcluster`", path)
	} else if err != nil {
		return "", fmt.Errorf("look for the devcluster binary: %w", err)
	}
	return path, nil
}

// findRoot walks up from the test's folder to the repository's own go.mod, past
// those of the modules inside it.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("look for the root of the repository: %w", err)
	}
	for {
		if b, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && strings.HasPrefix(string(b), module) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("found no go.mod of the repository above the test's folder: set DEVCLUSTER to the path of " +
				"the devcluster binary")
		}
		dir = parent
	}
}
