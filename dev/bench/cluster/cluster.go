// Package cluster starts a real API server for a measurement and fills it with pods by writing them into its etcd,
// which is much faster than through the API.
package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/mirador-k8s/mirador/dev/bench/program"
)

// Cluster is a running control plane without controllers: nothing changes in it except by writes of this process.
type Cluster struct {
	// Kubeconfig is the path of an administrator's kubeconfig.
	Kubeconfig string

	etcd  string // socket
	stdin *os.File
	cmd   *exec.Cmd
	said  *program.Output
}

const (
	name         = "bench"
	readyMark    = "export KUBECONFIG="
	readyTimeout = 3 * time.Minute
)

// Start starts a cluster whose sockets are in dir. It ends with Stop, and in any case with this process: it runs as
// long as a pipe that only this process holds open.
func Start(ctx context.Context, dir string) (*Cluster, error) {
	binary, err := program.Find("DEVCLUSTER", "devcluster")
	if err != nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make the cluster's standard input: %w", err)
	}
	defer read.Close()
	c := &Cluster{stdin: write, etcd: filepath.Join(dir, "mirador-devcluster", name+".etcd.sock"),
		said: &program.Output{}}
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
			return fmt.Errorf("the cluster is not ready after %v; its output:\n%s", readyTimeout, c.said)
		}
	}
}

// Stop stops the cluster and waits for it to end.
func (c *Cluster) Stop() {
	c.stdin.Close()
	_ = c.cmd.Wait() // the exit status does not matter
}
