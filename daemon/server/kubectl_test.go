package server_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mirador-k8s/mirador/dev/testcluster"
)

// screen is the output of a program so far.
type screen struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write adds output.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// await waits until the output contains a text.
func (s *screen) await(t *testing.T, who, text string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(time.Minute); !strings.Contains(s.String(), text); <-tick.C {
		if time.Now().After(late) {
			t.Fatalf("%s never shows %q:\n%s", who, text, s)
		}
	}
}

// running is a kubectl process.
type running struct {
	args string
	cmd  *exec.Cmd
	out  screen
}

// kubectl starts a kubectl process. server is "" for the cluster itself.
func kubectl(t *testing.T, ctx context.Context, c *testcluster.Cluster, server, args string) *running {
	t.Helper()
	binary := os.Getenv("DEVCLUSTER")
	if binary == "" {
		binary = filepath.Join("..", "..", "bin", "devcluster")
	}
	words := append([]string{"kubectl"}, strings.Fields(args)...)
	if server != "" {
		words = append(words, "--server", server)
	}
	r := &running{args: args, cmd: exec.CommandContext(ctx, binary, words...)}
	r.cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig())
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.out
	r.cmd.Cancel = func() error { return r.cmd.Process.Signal(os.Interrupt) }
	r.cmd.WaitDelay = 10 * time.Second
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return r
}

// ended waits for the end of the process, and returns its exit code and output.
func (r *running) ended(t *testing.T) (int, string) {
	t.Helper()
	err := r.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, context.Canceled) {
		t.Errorf("kubectl %s: %v", r.args, err)
	}
	return r.cmd.ProcessState.ExitCode(), r.out.String()
}

// warm is an object that is changed until every watch has shown a change. The number of changes varies.
const warm = "warm"

func shown(out string) string {
	var kept []string
	for l := range strings.Lines(ages(normalised(out))) {
		if !strings.Contains(l, " "+warm+" ") && !strings.HasPrefix(l, warm+" ") {
			kept = append(kept, strings.TrimSpace(l))
		}
	}
	return strings.Join(kept, "\n")
}

func TestKubectlWatchPrintsTheSameFromMirrorAndCluster(t *testing.T) {
	cluster := filled(t)
	ns := cluster.Namespace(t)
	p := mirror(t)
	p.caughtUp(t)
	do := func(args string) { t.Helper(); cluster.Kubectl(t, strings.Fields(args)...) }
	pod := func(name string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + name + `","namespace":"` + ns +
			`","labels":{"app":"x"}},"spec":{"containers":[{"name":"main","image":"example.com/x:1"}]}}`
	}
	create := func(manifest string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "manifest.json")
		if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
			t.Fatal(err)
		}
		cluster.Kubectl(t, "create", "-f", file)
	}
	create(`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default","namespace":"` + ns + `"}}`)
	create(pod("there"))
	create(pod(warm))

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	watching, interrupt := context.WithCancel(ctx)
	defer interrupt()
	var all []*running
	for _, args := range []string{"get pods -w", "get pods -w -o wide", "get pods -w -o json -l app=x,!tick",
		"get pods --watch-only", "get pods -l app=x -w --output-watch-events", "get pods -A -w -o wide -l app=x"} {
		if !strings.Contains(args, "-A") {
			args += " -n " + ns
		}
		all = append(all, kubectl(t, watching, cluster, "", args), kubectl(t, watching, cluster, p.ours, args))
	}
	for _, r := range all {
		if !strings.Contains(r.args, "only") {
			r.out.await(t, "kubectl "+r.args, "there")
			continue
		}
		for late := time.Now().Add(time.Minute); !strings.Contains(r.out.String(), warm); {
			do("label pod -n " + ns + " " + warm + " --overwrite tick=" + time.Now().Format("150405.000"))
			if time.Now().After(late) {
				t.Fatalf("kubectl %s shows nothing", r.args)
			}
		}
	}
	do("label pod -n " + ns + " there tier=1")
	create(pod("new"))
	patch := func(name, status string) {
		t.Helper()
		cluster.Kubectl(t, "patch", "pod", "-n", ns, name, "--subresource=status", "--type=merge", "-p", status)
	}
	patch("new",
		`{"status":{"phase":"Running","podIP":"10.0.0.7","podIPs":[{"ip":"10.0.0.7"}],`+
			`"containerStatuses":[{"name":"main","ready":true,"restartCount":2,"image":"i","imageID":"",`+
			`"state":{"running":{}}}],"conditions":[{"type":"Ready","status":"True"}]}}`)
	do("label pod -n " + ns + " new app=y --overwrite")
	do("label pod -n " + ns + " new app=x --overwrite")
	do("delete pod -n " + ns + " new --grace-period=0 --force")
	do("label pod -n " + ns + " there last=1")
	create(pod("marker"))
	for _, r := range all { // changes come in order, so all earlier ones are shown by then
		r.out.await(t, "kubectl "+r.args, "marker")
	}
	interrupt()
	for i := 0; i < len(all); i += 2 {
		wantCode, want := all[i].ended(t)
		gotCode, got := all[i+1].ended(t)
		if want, got = shown(want), shown(got); wantCode != gotCode || want != got || strings.Count(want, "\n") < 4 {
			t.Errorf("kubectl %s\nreal, exit code %d:\n%s\nours, exit code %d:\n%s", all[i].args, wantCode, want, gotCode, got)
		}
	}
}

func TestKubectlWaitWorksOnTheMirror(t *testing.T) {
	cluster := filled(t)
	ns := cluster.Namespace(t)
	p := mirror(t)
	p.caughtUp(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	sail := func(name string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "sail.json")
		if err := os.WriteFile(file,
			[]byte(`{"apiVersion":"server.test/v1beta1","kind":"Sail","metadata":{"name":"`+name+`","namespace":"`+ns+
				`"}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		cluster.Kubectl(t, "create", "-f", file)
	}
	sail("a")
	sail("b")
	var all []*running
	for _, args := range []string{
		"wait sail/a --for=condition=Set --timeout=60s", "wait sails --all --for=jsonpath={.status.phase}=Up --timeout=60s",
		"wait sail/b --for=delete --timeout=60s",
		"wait sail/c --for=create --timeout=60s", "wait sail/a --for=condition=Never --timeout=1s",
		"wait sail/none --for=delete --timeout=60s", "wait sail/none --for=condition=Set --timeout=60s",
	} {
		args += " -n " + ns
		all = append(all, kubectl(t, ctx, cluster, "", args), kubectl(t, ctx, cluster, p.ours, args))
	}
	for _, r := range all[8:] {
		r.cmd.Wait() // these end at once; the others are waiting by then
	}
	for _, name := range []string{"a", "b"} {
		cluster.Kubectl(t, "patch", "sail", "-n", ns, name, "--subresource=status", "--type=merge", "-p",
			`{"status":{"phase":"Up","conditions":[{"type":"Set","status":"True"}]}}`)
	}
	for _, r := range all[:4] {
		r.cmd.Wait() // see below
	}
	cluster.Kubectl(t, "delete", "sail", "-n", ns, "b")
	sail("c")
	for _, r := range all[4:8] {
		r.cmd.Wait() // see below
	}
	for i := 0; i < len(all); i += 2 {
		want, got := all[i].out.String(), all[i+1].out.String()
		wantCode, gotCode := all[i].cmd.ProcessState.ExitCode(), all[i+1].cmd.ProcessState.ExitCode()
		if wantCode != gotCode || want != got || wantCode < 0 {
			t.Errorf("kubectl %s\nreal, exit code %d: %s\nours, exit code %d: %s", all[i].args, wantCode, want, gotCode, got)
		}
	}
}

// pointer matches the URL of the server in errors.
var pointer = regexp.MustCompile(`https?://[0-9.:]+(/clusters/eu)?`)

func TestKubectlFindsTheSameResourcesExplanationsAndErrors(t *testing.T) {
	cluster := filled(t)
	p := mirror(t)
	p.caughtUp(t)
	p.described(t)
	for _, args := range []string{
		"api-resources --verbs=get,list,watch", "api-resources --verbs=get,list,watch -o name --sort-by=name",
		"api-resources --verbs=get,list,watch --namespaced=false --sort-by=kind",
		"api-resources --api-group=server.test", "api-resources --verbs=get,list,watch --categories=all",
		"explain deployments --recursive", "explain oceans", "explain boats.spec.length",
		"explain pods.spec.containers --output=plaintext-openapiv2",
		"explain sails.status --api-version=server.test/v1beta1", "explain nonsense", "explain pods.nonsense",
		"get pods -A --sort-by=.spec.nodeName", "get pods -A --sort-by=.metadata.creationTimestamp -o name",
		"get pods,svc -A --sort-by=.metadata.name --no-headers",
		"get pod -n web none", "get nonsense", "get pods -A -l a+b", "get boat -n nowhere", "get pods.v2.nonsense",
		"get pods -A --show-labels", "get deploy -n web -o custom-columns=N:.metadata.name,R:.spec.replicas",
		"get rs -n web -o go-template={{range.items}}{{.metadata.uid}}{{end}}", "version", "logs -n web there-is-none",
		"get flowschemas", "get endpoints -A", "get endpoints -A -o name", "get --raw /apis/apps",
		"get deployments -n web a --subresource=scale", "get deployments -n web a --subresource=scale -o yaml",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		real, ours := kubectl(t, ctx, cluster, "", args), kubectl(t, ctx, cluster, p.ours, args)
		wantCode, want := real.ended(t)
		gotCode, got := ours.ended(t)
		cancel()
		want, got = pointer.ReplaceAllString(shown(want), "SERVER"), pointer.ReplaceAllString(shown(got), "SERVER")
		if wantCode != gotCode || want != got {
			t.Errorf("kubectl %s\nreal, exit code %d:\n%s\nours, exit code %d:\n%s", args, wantCode, want, gotCode, got)
		}
	}
}
