package cli

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mirador-k8s/mirador/dev/testcluster"
)

// build builds the program.
func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mirador")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", path,
		"../../cmd/mirador").CombinedOutput(); err != nil {
		t.Fatalf("build mirador: %v\n%s", err, out)
	}
	return path
}

var pageAddress = regexp.MustCompile(`the page: +(http://[^/]+)/`)

// serve starts a daemon and returns its address. The daemon ends with the test.
func serve(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program,
		append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	logs, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = logs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("end the daemon: %v", err)
		}
		if err := cmd.Wait(); err != nil {
			b, _ := os.ReadFile(logs.Name())
			t.Errorf("the daemon ended with %v; it said:\n%s", err, b)
		}
		logs.Close()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	m := pageAddress.FindStringSubmatch(line)
	if err != nil || m == nil {
		t.Fatalf("the daemon said %q, %v", line, err)
	}
	return m[1]
}

// exitOf runs the program and returns its exit code.
func exitOf(t *testing.T, program string, args ...string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit != nil {
		return exit.ExitCode(), string(out)
	}
	return 0, string(out)
}

func TestAllCommandsAgainstADaemon(t *testing.T) {
	c := testcluster.Start(t, testcluster.WithoutControllers())
	ns := c.Namespace(t)
	kube := contexts(t, c, "eu", "us")
	program := build(t)
	at := serve(t, program, "--kubeconfig", kube, "--all-contexts")
	t.Setenv("MIRADOR_SERVER", at)
	awaitReady(t, "eu", "us")

	// Completion uses the daemon.
	for want, args := range map[string][]string{
		"configmaps": {"__complete", "get", "configm"},
		ns:           {"__complete", "get", "configmaps", "-n", ns[:8]},
		"eu":         {"__complete", "get", "configmaps", "--cluster", ""},
	} {
		if got := ok(t, "", args...); !strings.Contains("\n"+got, "\n"+want+"\n") {
			t.Errorf("mirador %q does not offer %q:\n%s", args, want, got)
		}
	}

	ok(t, configMap(ns, "a", "red"), "create", "-f", "-", "--kubeconfig", kube, "--cluster", "eu")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, ended := newScreen(), make(chan error, 1)
	go func() {
		ended <- runIn(ctx, strings.NewReader(""), out, newScreen(), "watch", "cm", "a", "-n", ns, "-o", "wide")
	}()
	out.await(t, "us ")
	if got := ok(t, "", "get", "cm", "a", "-n", ns, "-o",
		"jsonpath={.items[*].metadata.namespace}"); got != "eu."+ns+" us."+ns {
		t.Errorf("the fleet has %q", got)
	}
	if got := ok(t, "", "get", "cm", "-n", ns, "--cluster", "us", "-o",
		"jsonpath={.items[*].metadata.namespace}"); got != ns {
		t.Errorf("a cluster has %q", got)
	}
	if got := ok(t, "", "count", "cm", "-n", ns, "--no-headers"); got != "eu      1\nus      1\n(all)   2\n" {
		t.Errorf("counted\n%s", got)
	}
	ok(t, "", "delete", "cm", "a", "-n", ns, "--kubeconfig", kube)
	out.await(t, "DELETED")
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the watch ended with %v", err)
	}

	joinAndLeave(t, kube)
	if code, out := exitOf(t, program, "get", "cm", "none", "-n", ns); code != exitNotFound ||
		!strings.Contains(out, "mirador: ") {
		t.Errorf("exit code %d, and %s", code, out)
	}
	for want, args := range map[int][]string{0: {"clusters"}, exitUsage: {"nonsense"},
		exitUnreachable: {"get", "cm", "--server", "http://127.0.0.1:1"}, exitFailed: {"get", "nonsense"}} {
		if code, out := exitOf(t, program, args...); code != want {
			t.Errorf("mirador %q: exit code %d, want %d: %s", args, code, want, out)
		}
	}
	interrupted(t, program, "watch", "namespaces")
	interrupted(t, program, "status", "--watch")
	fails(t, exitNotFound, `"asia"`, "get", "cm", "--cluster", "asia")
	fails(t, exitNotFound, `"asia"`, "status", "--cluster", "asia")
}

// interrupted runs the program until it has shown something of a cluster, and then sends SIGINT.
func interrupted(t *testing.T, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	out := newScreen()
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out.await(t, "eu ")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("mirador %q, interrupted, ended with %v", args, err)
	}
}

// awaitReady waits with mirador status until clusters are mirrored.
func awaitReady(t *testing.T, clusters ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, ended := newScreen(), make(chan error, 1)
	go func() {
		ended <- runIn(ctx, strings.NewReader(""), out, newScreen(), "status", "--watch")
	}()
	for _, c := range clusters {
		out.await(t, c+" ready")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("status --watch ended with %v", err)
	}
}

func joinAndLeave(t *testing.T, kube string) {
	if got := ok(t, "", "clusters", "join", "asia", "--kubeconfig", kube, "--context",
		"us"); got != "cluster/asia joined\n" {
		t.Errorf("join said %q", got)
	}
	ok(t, "", "clusters", "join", "asia", "--kubeconfig", kube, "--context", "us") // other credentials are used in place
	another := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(another, []byte("apiVersion: v1\nkind: Config\nusers: [{name: u, user: {token: t}}]\n"+
		"clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\ncontexts: [{name: x, context: {cluster: c, "+
		"user: u}}]\ncurrent-context: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fails(t, exitFailed, "already exists", "clusters", "join", "asia", "--kubeconfig", another)
	if got := ok(t, "", "clusters", "-o", "name"); got != "cluster/asia\ncluster/eu\ncluster/us\n" {
		t.Errorf("the clusters are %q", got)
	}
	awaitReady(t, "asia")
	got := ok(t, "", "status", "--cluster", "asia")
	for _, want := range []string{"memory: ", "asia      ready", "configmaps ", "deployments.apps"} {
		if !strings.Contains(got, want) {
			t.Errorf("status does not show %q:\n%s", want, got)
		}
	}
	if got := ok(t, "", "api-resources", "--cluster", "asia"); !strings.Contains(got, "configmaps") {
		t.Errorf("api-resources shows\n%s", got)
	}
	if got := ok(t, "", "clusters", "leave", "asia"); got != "cluster/asia left\n" {
		t.Errorf("leave said %q", got)
	}
	fails(t, exitNotFound, "asia", "clusters", "leave", "asia")
}
