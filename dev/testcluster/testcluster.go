package testcluster

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Cluster is the cluster of this test binary.
type Cluster struct {
	name       string
	binary     string
	kubeconfig string
	config     *rest.Config
	process    *process
}

// options are what the cluster is started with.
type options struct {
	nodes         int
	noControllers bool
}

// Option changes how the cluster is started.
type Option func(*options)

// Nodes sets the number of fake nodes; without it there are 5.
func Nodes(n int) Option { return func(o *options) { o.nodes = n } }

// WithoutControllers starts only etcd and the API server: no controllers, no scheduler, no nodes. Only the test
// changes objects then.
func WithoutControllers() Option { return func(o *options) { o.noControllers = true } }

// shared is the one cluster of this test binary.
var shared struct {
	once    sync.Once
	options options
	cluster *Cluster
	err     error
}

// Start returns the cluster of this test binary. The first call starts it and waits until it is ready; its options
// apply to all calls, and a later call with others fails its test.
func Start(t testing.TB, opts ...Option) *Cluster {
	t.Helper()
	want := options{nodes: 5}
	for _, o := range opts {
		o(&want)
	}
	shared.once.Do(func() {
		shared.options = want
		shared.cluster, shared.err = start(want)
	})
	if shared.err != nil {
		t.Fatalf("start the test cluster: %v", shared.err)
	}
	if err := sameOptions(shared.options, want); err != nil {
		t.Fatal(err)
	}
	if err := shared.cluster.process.check(); err != nil {
		t.Fatalf("the test cluster has ended: %v", err)
	}
	return shared.cluster
}

// StartAnother starts another cluster, for tests that need several. It ends with the test.
func StartAnother(t testing.TB, opts ...Option) *Cluster {
	t.Helper()
	want := options{nodes: 5}
	for _, o := range opts {
		o(&want)
	}
	c, err := start(want)
	if err != nil {
		t.Fatalf("start another test cluster: %v", err)
	}
	t.Cleanup(func() {
		if err := c.process.end(); err != nil {
			t.Errorf("end another test cluster: %v", err)
		}
	})
	return c
}

func sameOptions(running, want options) error {
	if running == want {
		return nil
	}
	return fmt.Errorf("the cluster of this test binary runs with %s, but this test wants %s: use the same options in "+
		"all tests of a package, or move the test to another package", running, want)
}

// String formats the options as in Go code.
func (o options) String() string {
	if o.noControllers {
		return "WithoutControllers()"
	}
	return fmt.Sprintf("Nodes(%d)", o.nodes)
}

// args returns the command line that starts the cluster.
func (o options) args(name string) []string {
	args := []string{"up", "--name", name, "--until-stdin-closes"}
	if o.noControllers {
		return append(args, "--no-controllers")
	}
	return append(args, "--nodes", fmt.Sprint(o.nodes))
}

// start finds the binary, starts a cluster and waits until it is ready.
func start(o options) (*Cluster, error) {
	if o.nodes < 0 {
		return nil, fmt.Errorf("Nodes(%d): use 0 or more", o.nodes)
	}
	binary, err := findBinary()
	if err != nil {
		return nil, err
	}
	c := &Cluster{name: fmt.Sprintf("test-%d-%s", os.Getpid(), suffix()), binary: binary}
	c.process, err = launch(binary, o.args(c.name))
	if err != nil {
		return nil, err
	}
	if c.kubeconfig, err = c.process.waitReady(); err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig %s: %w", c.kubeconfig, err)
	}
	config.QPS = -1
	c.config = config
	return c, nil
}

// suffix makes names unique.
func suffix() string { return strings.ToLower(rand.Text()[:8]) }

// Name returns devcluster's name of the cluster.
func (c *Cluster) Name() string { return c.name }

// Kubeconfig returns the path of an administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.kubeconfig }

// AuditLog returns the path of the API server's audit log: a line of JSON, an audit.k8s.io/v1 Event of level Metadata,
// for every request when it is answered, and for a watch also when it starts. At 100 MB the file is rotated.
func (c *Cluster) AuditLog() string {
	return filepath.Join(filepath.Dir(c.kubeconfig), "logs", "audit.log")
}

// Config returns a new copy of an administrator's client configuration. It has no client-side rate limit. Clients made
// from it keep connections open, and client-go keeps the transports forever: a test that uses goleak should create its
// own http.Client with rest.HTTPClientFor and close it with net.CloseIdleConnectionsFor of apimachinery.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Namespace creates a namespace for this test and deletes it when the test ends, without waiting for that.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	name := "test-" + suffix()
	c.Kubectl(t, "create", "namespace", name)
	t.Cleanup(func() {
		if _, err := c.run("kubectl", "delete", "namespace", name, "--wait=false"); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return name
}

// Kubectl runs kubectl against the cluster and returns its output; if it fails, so does the test.
func (c *Cluster) Kubectl(t testing.TB, args ...string) string {
	t.Helper()
	return c.must(t, append([]string{"kubectl"}, args...)...)
}

// Fault runs `devcluster fault` on the cluster and returns when it is done:
//
//	cluster.Fault(t, "restart", "apiserver")
//
// A test that pauses or kills a part must bring it back before it ends, because the cluster is shared.
func (c *Cluster) Fault(t testing.TB, args ...string) {
	t.Helper()
	c.must(t, append([]string{"fault", c.name}, args...)...)
}

func (c *Cluster) must(t testing.TB, args ...string) string {
	t.Helper()
	out, err := c.run(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// run runs the devcluster binary and returns its standard output.
func (c *Cluster) run(args ...string) (string, error) {
	cmd := exec.Command(c.binary, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig)
	out, err := cmd.Output()
	if err != nil {
		detail := ""
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			detail = ": " + strings.TrimSpace(string(exit.Stderr))
		}
		if gone := c.process.check(); gone != nil {
			detail += fmt.Sprintf("; the test cluster has ended: %v", gone)
		}
		return "", fmt.Errorf("devcluster %s: %w%s", strings.Join(args, " "), err, detail)
	}
	return string(out), nil
}
