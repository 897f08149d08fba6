// Package cluster starts a real API server for a measurement and fills it with pods
// by writing them into its etcd: 50,000 of them take seconds that way, and minutes
// through the API.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Cluster is a running control plane without controllers: nothing changes in it but
// what is written here.
type Cluster struct {
	// Kubeconfig is the path of an administrator's kubeconfig.
	Kubeconfig string

	etcd  string // socket
	stdin *os.File
	cmd   *exec.Cmd
	said  *output
}

const (
	name         = "bench"
	readyMark    = "export KUBECONFIG="
	readyTimeout = 3 * time.Minute
)

// Start starts one whose sockets are in a folder. It ends with Stop, and in any case
// with this process: it lives as long as a pipe that only this process holds open.
func Start(ctx context.Context, dir string) (*Cluster, error) {
	binary, err := findBinary()
	if err != nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make the cluster's standard input: %w", err)
	}
	defer read.Close()
	c := &Cluster{stdin: write, etcd: filepath.Join(dir, "mirador-devcluster", name+".etcd.sock"), said: &output{}}
	c.cmd = exec.Command(binary, "up", "--name", name, "--no-controllers", "--until-stdin-closes")
	c.cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir)
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = read, c.said, c.said
	if err := c.cmd.Start(); err != nil {
		write.Close()
		return nil, fmt.Errorf("start the cluster: %w", err)
	}
	if err := c.waitReady(ctx); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) waitReady(ctx context.Context) error {
	for deadline := time.Now().Add(readyTimeout); ; time.Sleep(50 * time.Millisecond) {
		if _, rest, ok := strings.Cut(c.said.String(), readyMark); ok {
			if path, _, ok := strings.Cut(rest, "\n"); ok {
				c.Kubeconfig = path
				return nil
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the cluster is not ready after %v; it said:\n%s", readyTimeout, c.said)
		}
	}
}

// Stop ends the cluster and waits for that.
func (c *Cluster) Stop() {
	c.stdin.Close()
	_ = c.cmd.Wait() // however it ended, it has
}

// output is what the cluster printed.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// findBinary returns $DEVCLUSTER, or bin/devcluster in a folder above.
func findBinary() (string, error) {
	if path := os.Getenv("DEVCLUSTER"); path != "" {
		return path, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("look for the devcluster binary: %w", err)
	}
	for {
		path := filepath.Join(dir, "bin", "devcluster")
		if _, err := os.Stat(path); err == nil {
			return path, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("look for the devcluster binary: %w", err)
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("there is no bin/devcluster above this folder: run `make devcluster`, or set DEVCLUSTER to its path")
		}
		dir = filepath.Dir(dir)
	}
}
