package testcluster

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestClusterIsSharedAndServesNamespacesOfItsOwn(t *testing.T) {
	c := Start(t)
	if again := Start(t); again != c {
		t.Error("a second Start returned another cluster")
	}
	first, second := c.Namespace(t), c.Namespace(t)
	if first == second {
		t.Errorf("two calls returned the same namespace %q", first)
	}
	for _, ns := range []string{first, second} {
		if out := c.Kubectl(t, "get", "namespace", ns, "-o", "name"); out != "namespace/"+ns+"\n" {
			t.Errorf("kubectl get namespace %s printed %q", ns, out)
		}
	}
}

func TestNamespaceIsDeletedWhenItsTestIsOver(t *testing.T) {
	c := Start(t)
	var ns string
	t.Run("user", func(t *testing.T) { ns = c.Namespace(t) })
	// The namespace is deleted or being deleted: a deletion time is set at once.
	c.Kubectl(t, "wait", "--for=delete", "namespace/"+ns, "--timeout=60s")
}

func TestAnotherClusterIsItsOwnAndEndsWithItsTest(t *testing.T) {
	c := Start(t)
	var another *Cluster
	t.Run("user", func(t *testing.T) {
		another = StartAnother(t, WithoutControllers())
		another.Kubectl(t, "create", "namespace", "only-here")
		if out := c.Kubectl(t, "get", "namespaces", "-o", "name"); strings.Contains(out, "only-here") {
			t.Errorf("a namespace of another cluster is in the shared one:\n%s", out)
		}
	})
	if err := another.process.check(); err == nil {
		t.Error("the cluster runs after the end of its test")
	}
}

func TestConfigIsACopyThatReachesTheServer(t *testing.T) {
	c := Start(t)
	c.Config().Host = "https://192.0.2.1"
	config := c.Config()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	defer utilnet.CloseIdleConnectionsFor(client.Transport)
	clientset, err := kubernetes.NewForConfigAndClient(config, client)
	if err != nil {
		t.Fatal(err)
	}
	list, err := clientset.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 5 {
		t.Errorf("the cluster has %d nodes, want the default of 5", len(list.Items))
	}
}

func TestPodsRunAfterAFaultOfTheScheduler(t *testing.T) {
	c := Start(t)
	c.Fault(t, "restart", "scheduler")
	c.must(t, "load", "--name", c.name, "--pods", "6", "--templates", "2", "--namespaces", "2")
	out := c.Kubectl(t, "get", "pods", "-A", "-l", "devcluster.mirador.dev/load", "--no-headers")
	if n := strings.Count(out, "Running"); n != 6 {
		t.Errorf("%d of the loaded pods are Running, want 6:\n%s", n, out)
	}
}

func TestAuditLogHasTheRequestsOfKubectl(t *testing.T) {
	c := Start(t)
	ns := c.Namespace(t)
	c.Kubectl(t, "get", "configmaps", "-n", ns)
	log, err := os.ReadFile(c.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, `"verb":"list"`) && strings.Contains(line, "/namespaces/"+ns+"/configmaps") &&
			strings.Contains(line, `"userAgent":"kubectl`) {
			return
		}
	}
	t.Error("kubectl's list is not in the audit log")
}

func TestOtherOptionsInTheSameBinaryAreRefused(t *testing.T) {
	if err := sameOptions(options{nodes: 5}, options{nodes: 5}); err != nil {
		t.Errorf("the same options were refused: %v", err)
	}
	err := sameOptions(options{nodes: 5}, options{noControllers: true})
	if err == nil || !strings.Contains(err.Error(), "Nodes(5)") ||
		!strings.Contains(err.Error(), "WithoutControllers()") {
		t.Errorf("the error should name both options, got: %v", err)
	}
}

func TestMissingBinaryIsAnErrorThatNamesTheCommand(t *testing.T) {
	t.Setenv("DEVCLUSTER", filepath.Join(t.TempDir(), "absent"))
	_, err := start(options{nodes: 1})
	if err == nil || !strings.Contains(err.Error(), "make devcluster") {
		t.Errorf("got %v, want an error that says `make devcluster`", err)
	}
}

func TestFailedStartReturnsTheOutputOfTheCluster(t *testing.T) {
	p, err := launch("/bin/sh", []string{"-c", "echo no luck today; exit 3"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.stdin.Close()
	_, err = p.waitReady()
	if err == nil || !strings.Contains(err.Error(), "status 3") || !strings.Contains(err.Error(), "no luck today") {
		t.Errorf("got %v, want the exit status and the output", err)
	}
}

// TestClusterEndsWithTheTestBinary runs this test binary again, kills it in the middle of a test and waits until the
// cluster that it had started has ended.
func TestClusterEndsWithTheTestBinary(t *testing.T) {
	if os.Getenv("TESTCLUSTER_VICTIM") != "" {
		c := Start(t, WithoutControllers())
		os.Stdout.WriteString("cluster " + c.Name() + "\n")
		select {}
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	victim := exec.Command(exe, "-test.run=^"+t.Name()+"$")
	victim.Env = append(os.Environ(), "TESTCLUSTER_VICTIM=1")
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 100)
	n, err := out.Read(buf)
	name, ok := strings.CutPrefix(strings.TrimSpace(string(buf[:n])), "cluster ")
	if err != nil || !ok {
		t.Fatalf("the victim printed %q (%v)", buf[:n], err)
	}
	binary, err := findBinary()
	if err != nil {
		t.Fatal(err)
	}
	if list := listed(t, binary); !strings.Contains(list, name) {
		t.Fatalf("the victim's cluster %s is not running:\n%s", name, list)
	}
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait() // killed, as intended
	for deadline := time.Now().Add(30 * time.Second); strings.Contains(listed(t, binary), name); {
		if time.Now().After(deadline) {
			t.Fatalf("cluster %s outlived its test binary", name)
		}
	}
}

func listed(t *testing.T, binary string) string {
	t.Helper()
	out, err := exec.Command(binary, "list").Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
