package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// binary is the program under test.
var binary string

// shared is a cluster with controllers for tests that do not disturb it.
var shared *cluster

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	binary = os.Getenv("DEVCLUSTER")
	if binary == "" {
		binary = filepath.Join("..", "..", "..", "bin", "devcluster")
	}
	var err error
	if binary, err = filepath.Abs(binary); err == nil {
		_, err = os.Stat(binary)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "no devcluster binary (%v): run `make devcluster`\n", err)
		return 1
	}
	// The tests use their own folders, so that they see neither the user's clusters nor other tests', but everything that
	// is left behind.
	home, err := os.MkdirTemp("", "dc")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(home)
	for _, variable := range []string{"XDG_RUNTIME_DIR", "TMPDIR"} {
		dir := filepath.Join(home, strings.ToLower(variable[:3]))
		if err := os.Mkdir(dir, 0o700); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		os.Setenv(variable, dir)
	}
	os.Unsetenv("KUBECONFIG")

	shared, err = startCluster("shared", "--nodes", "3")
	if err != nil {
		fmt.Fprintf(os.Stderr, "start the shared cluster: %v\n", err)
		return 1
	}
	code := m.Run()
	if out, err := exec.Command(binary, "down", "--all").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "down --all: %v: %s\n", err, out)
		code = 1
	}
	for _, variable := range []string{"XDG_RUNTIME_DIR", "TMPDIR"} {
		if left, _ := os.ReadDir(os.Getenv(variable)); len(left) > 0 {
			fmt.Fprintf(os.Stderr, "left behind in %s: %v\n", variable, left)
			code = 1
		}
	}
	return code
}

// cluster is one running `devcluster up`.
type cluster struct {
	name       string
	kubeconfig string
	cmd        *exec.Cmd
	stdin      io.Closer
	out        *output
	done       chan struct{}
}

// output collects the output of a program while tests read it.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// launch starts `devcluster up` without waiting for anything.
func launch(name string, args ...string) (*cluster, error) {
	c := &cluster{name: name, out: &output{}, done: make(chan struct{})}
	c.cmd = exec.Command(binary, append([]string{"up", "--name", name}, args...)...)
	c.cmd.Stdout, c.cmd.Stderr = c.out, c.out
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	c.stdin = stdin
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = c.cmd.Wait() // tests read ProcessState
		close(c.done)
	}()
	return c, nil
}

// startCluster starts a cluster and waits until it reports that it is ready.
func startCluster(name string, args ...string) (*cluster, error) {
	c, err := launch(name, args...)
	if err != nil {
		return nil, err
	}
	ready := eventually(2*time.Minute, func() bool {
		_, rest, ok := strings.Cut(c.out.String(), "export KUBECONFIG=")
		c.kubeconfig, _, _ = strings.Cut(rest, "\n")
		return ok && c.kubeconfig != "" || c.ended()
	})
	if !ready || c.ended() {
		_ = c.cmd.Process.Kill()
		return nil, fmt.Errorf("cluster %q did not become ready:\n%s", name, c.out)
	}
	return c, nil
}

// up is startCluster for a test; the cluster ends with the test.
func up(t *testing.T, args ...string) *cluster {
	t.Helper()
	c, err := startCluster(uniqueName(t), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.finish(t) })
	return c
}

// finish stops the cluster unless the test has done so.
func (c *cluster) finish(t *testing.T) {
	if !c.ended() {
		_ = c.cmd.Process.Signal(syscall.SIGTERM)
		if !c.waitEnd(30 * time.Second) {
			t.Errorf("cluster %s did not end", c.name)
			_ = c.cmd.Process.Kill()
		}
	}
}

func (c *cluster) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

func (c *cluster) waitEnd(timeout time.Duration) bool {
	select {
	case <-c.done:
		return true
	case <-time.After(timeout):
		return false
	}
}

// status returns the exit status of a cluster that has ended.
func (c *cluster) status() int { return c.cmd.ProcessState.ExitCode() }

// data returns the cluster's data folder.
func (c *cluster) data() string { return filepath.Dir(c.kubeconfig) }

// client returns an administrator's client.
func (c *cluster) client(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// kubectl runs the built-in kubectl against the cluster.
func (c *cluster) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return must(t, append([]string{"kubectl", "--kubeconfig", c.kubeconfig}, args...)...)
}

// process returns the process id of one of the cluster's parts, by its program name.
func (c *cluster) process(t *testing.T, program string) int {
	t.Helper()
	for pid, command := range children(t, c.cmd.Process.Pid) {
		if strings.HasPrefix(command, program+" ") {
			return pid
		}
	}
	t.Fatalf("cluster %s has no process %s", c.name, program)
	return 0
}

// children returns the command lines of the living children of a process.
func children(t *testing.T, parent int) map[int]string {
	t.Helper()
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=,stat=,args=").Output()
	if err != nil {
		t.Fatalf("ps: %v", err)
	}
	found := map[int]string{}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) > 3 && f[1] == strconv.Itoa(parent) && !strings.HasPrefix(f[2], "Z") {
			pid, err := strconv.Atoi(f[0])
			if err != nil {
				t.Fatalf("ps printed %q", line)
			}
			found[pid] = strings.Join(f[3:], " ")
		}
	}
	return found
}

// alive reports whether the process runs; a zombie does not.
func alive(pid int) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}

// result is a program's output and exit status.
type result struct {
	stdout, stderr string
	status         int
}

// run runs devcluster to its end.
func run(t *testing.T, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(binary, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("devcluster %s: %v", strings.Join(args, " "), err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// must runs devcluster and returns its standard output; it must succeed.
func must(t *testing.T, args ...string) string {
	t.Helper()
	r := run(t, args...)
	if r.status != 0 {
		t.Fatalf("devcluster %s: exit status %d: %s", strings.Join(args, " "), r.status, r.stderr)
	}
	return r.stdout
}

// eventually polls until the condition holds or the timeout ends.
func eventually(timeout time.Duration, condition func() bool) bool {
	deadline := time.After(timeout)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if condition() {
			return true
		}
		select {
		case <-tick.C:
		case <-deadline:
			return condition()
		}
	}
}

// uniqueName returns a cluster name derived from the test's name.
func uniqueName(t *testing.T) string {
	name := strings.ToLower(strings.TrimPrefix(t.Name(), "Test"))
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, name)
	return strings.Trim(name[:min(len(name), 24)], "-")
}
