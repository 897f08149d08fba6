package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestUpListKubeconfigAndDown(t *testing.T) {
	c := up(t, "--no-controllers")
	for _, want := range []string{"waiting for etcd", "waiting for the API server", "ready",
		"devcluster down " + c.name} {
		if !strings.Contains(c.out.String(), want) {
			t.Errorf("up did not print %q:\n%s", want, c.out)
		}
	}
	list := must(t, "list")
	header, _, _ := strings.Cut(list, "\n")
	if got := strings.Fields(header); strings.Join(got, " ") != "NAME PID AGE NODES API-SERVER KUBECONFIG" {
		t.Errorf("list begins with %q", header)
	}
	if !strings.Contains(list, c.name) || !strings.Contains(list, c.kubeconfig) ||
		!strings.Contains(list, "https://127.0.0.1:") {
		t.Errorf("list does not show the cluster:\n%s", list)
	}
	if got := must(t, "kubeconfig", c.name); got != c.kubeconfig+"\n" {
		t.Errorf("kubeconfig printed %q, want the path %q", got, c.kubeconfig)
	}
	if raw := must(t, "kubeconfig", c.name, "--raw"); !strings.Contains(raw, "client-certificate-data:") {
		t.Errorf("kubeconfig --raw printed %q", raw)
	}

	data := c.data()
	must(t, "down", c.name)
	// down returns when the cluster is gone; its process is then about to end.
	if !c.waitEnd(5*time.Second) || c.status() != 0 {
		t.Fatalf("up has not ended with status 0:\n%s", c.out)
	}
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("the temporary folder is still there (%v)", err)
	}
	if list := must(t, "list"); strings.Contains(list, c.name) {
		t.Errorf("list still shows the cluster:\n%s", list)
	}
}

func TestTwoClustersRunAtOnceAndAreSeparate(t *testing.T) {
	c := up(t, "--no-controllers")
	c.kubectl(t, "create", "namespace", "only-here")
	if out := shared.kubectl(t, "get", "namespaces", "-o", "name"); strings.Contains(out, "only-here") {
		t.Errorf("the other cluster has the namespace as well:\n%s", out)
	}
	list := must(t, "list")
	if !strings.Contains(list, c.name) || !strings.Contains(list, shared.name) {
		t.Errorf("list does not show both:\n%s", list)
	}
}

func TestCtrlCAndSigtermEndTheClusterCleanly(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			c := up(t, "--no-controllers")
			data, parts := c.data(), children(t, c.cmd.Process.Pid)
			if err := c.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if !c.waitEnd(20*time.Second) || c.status() != 0 {
				t.Fatalf("up has not ended with status 0:\n%s", c.out)
			}
			for pid, command := range parts {
				if alive(pid) {
					t.Errorf("still running: %d %s", pid, command)
				}
			}
			if _, err := os.Stat(data); !os.IsNotExist(err) {
				t.Errorf("the temporary folder is still there (%v)", err)
			}
		})
	}
}

func TestClusterEndsWithItsStandardInputIfAskedTo(t *testing.T) {
	c := up(t, "--no-controllers", "--until-stdin-closes")
	if err := c.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if !c.waitEnd(20*time.Second) || c.status() != 0 {
		t.Fatalf("up has not ended with status 0:\n%s", c.out)
	}
}

func TestDownDuringTheStartEndsTheCluster(t *testing.T) {
	c, err := launch(uniqueName(t), "--no-controllers")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.finish(t) })
	if !eventually(20*time.Second, func() bool { return strings.Contains(c.out.String(), "waiting for etcd") }) {
		t.Fatalf("it did not start:\n%s", c.out)
	}
	must(t, "down", c.name)
	if !c.waitEnd(5*time.Second) || c.status() != 0 {
		t.Errorf("up has not ended with status 0:\n%s", c.out)
	}
}

func TestKeptDataIsResumedOnTheSamePort(t *testing.T) {
	data := filepath.Join(t.TempDir(), "kept")
	c := up(t, "--no-controllers", "--data", data)
	c.kubectl(t, "create", "configmap", "memory", "--from-literal=key=value")
	before, err := os.ReadFile(c.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}

	r := run(t, "up", "--name", "other", "--data", data)
	if r.status != 2 || !strings.Contains(r.stderr, "in use") {
		t.Errorf("a second cluster in the same folder: exit status %d, %q", r.status, r.stderr)
	}
	must(t, "down", c.name)

	again := up(t, "--no-controllers", "--data", data)
	if out := again.kubectl(t, "get", "configmap", "memory", "-o", "jsonpath={.data.key}"); out != "value" {
		t.Errorf("the resumed cluster has lost the object: %q", out)
	}
	after, err := os.ReadFile(again.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(after) {
		t.Error("the resumed cluster's kubeconfig differs: a copy of it would no longer work")
	}
	must(t, "down", again.name)
	if _, err := os.Stat(data); err != nil {
		t.Errorf("the kept folder is gone: %v", err)
	}
}

func TestKilledSupervisorLeavesNothingRunning(t *testing.T) {
	c := up(t, "--nodes", "1")
	data, parts := c.data(), children(t, c.cmd.Process.Pid)
	if len(parts) != 5 {
		t.Fatalf("the cluster has %d processes, want 5: %v", len(parts), parts)
	}
	// A stopped process cannot react to the end of its supervisor.
	must(t, "fault", c.name, "pause", "apiserver")
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for pid, command := range parts {
		if !eventually(10*time.Second, func() bool { return !alive(pid) }) {
			t.Errorf("still running: %d %s", pid, command)
		}
	}
	if list := must(t, "list"); strings.Contains(list, c.name) {
		t.Errorf("list shows the dead cluster:\n%s", list)
	}
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("the next command did not remove the temporary folder (%v)", err)
	}
	left, err := filepath.Glob(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "*", c.name+".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("the registry still has %v (%v)", left, err)
	}
}

func TestCrashOfAChildStopsTheClusterAndNamesItAndItsLog(t *testing.T) {
	c := up(t, "--nodes", "1")
	data, parts := c.data(), children(t, c.cmd.Process.Pid)
	t.Cleanup(func() { os.RemoveAll(data) })
	if err := syscall.Kill(c.process(t, "kube-scheduler"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if !c.waitEnd(30 * time.Second) {
		t.Fatalf("the cluster still runs without its scheduler:\n%s", c.out)
	}
	if c.status() != 1 {
		t.Errorf("exit status %d, want 1", c.status())
	}
	log := filepath.Join(data, "logs", "scheduler.log")
	for _, want := range []string{"devcluster: scheduler ended unexpectedly", log, "is kept"} {
		if !strings.Contains(c.out.String(), want) {
			t.Errorf("the message does not contain %q:\n%s", want, c.out)
		}
	}
	if _, err := os.Stat(log); err != nil {
		t.Errorf("the log that the message names: %v", err)
	}
	for pid, command := range parts {
		if alive(pid) {
			t.Errorf("still running: %d %s", pid, command)
		}
	}
	if list := must(t, "list"); strings.Contains(list, c.name) {
		t.Errorf("list shows the dead cluster:\n%s", list)
	}
}

func TestClusterEndsWithTheCommandThatItRuns(t *testing.T) {
	script := `"$0" kubectl get namespace default -o name; test -n "$KUBECONFIG" && exit "$1"`
	for status, want := range map[string]int{"0": 0, "3": 1} {
		r := run(t, "up", "--name", "command", "--no-controllers", "--", "/bin/sh", "-c", script, binary, status)
		if r.status != want {
			t.Errorf("the command ended with %s, up with %d, want %d: %s", status, r.status, want, r.stderr)
		}
		if !strings.Contains(r.stdout, "namespace/default\n") {
			t.Errorf("the command did not reach the cluster:\n%s", r.stdout)
		}
		if want != 0 && (!strings.Contains(r.stderr, "exit status 3") || strings.Count(r.stderr, "\n") != 1) {
			t.Errorf("up does not print in one line how the command ended:\n%s", r.stderr)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "devcluster-command-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWorkloadKeepsCreatingAndDeletingPods(t *testing.T) {
	c := up(t, "--nodes", "1", "--workload")
	watch := exec.Command(binary, "kubectl", "--kubeconfig", c.kubeconfig, "get", "pods", "-n", "shop", "-w",
		"--output-watch-events", "--no-headers")
	var seen output
	watch.Stdout = &seen
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = watch.Process.Kill()
		_ = watch.Wait()
	}()
	if !eventually(60*time.Second, func() bool {
		s := seen.String()
		return strings.Contains(s, "Running") && strings.Contains(s, "DELETED")
	}) {
		t.Errorf("saw only:\n%s", seen.String())
	}
}
