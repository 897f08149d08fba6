package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/dev/testcluster"
)

// stage is where a session is played: a cluster and the program's terminal.
type stage struct {
	t       *testing.T
	session session
	cluster *testcluster.Cluster
	in      inputs
	// transport is the one that client-go shares between all clients of one config while it is referenced. This reference
	// makes it possible to close its connections at the end.
	transport http.RoundTripper

	screen *terminal
	cancel context.CancelFunc
	ended  chan error
}

// play runs a session and compares everything that the program prints.
func play(t *testing.T, s session) {
	st := &stage{t: t, session: s}
	if s.program.needs != nothing {
		st.cluster = testcluster.Start(t, testcluster.WithoutControllers())
		st.in.config, st.in.kubeconfig = st.cluster.Config(), st.cluster.Kubeconfig()
		client, err := rest.HTTPClientFor(st.in.config)
		if err != nil {
			t.Fatal(err)
		}
		st.transport = client.Transport
		st.makeNamespace()
	}
	before := goleak.IgnoreCurrent()
	if s.program.needs == clusterAndPort {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		st.in.listener = listener
	}
	for _, step := range s.steps {
		st.do(step)
	}
	st.finish()
	if err := st.leftovers(before); err != nil {
		t.Errorf("goroutines are still running after the end of the program: %v", err)
	}
}

// leftovers returns an error that names the goroutines that a program has left running. A watch releases its connection
// a moment after its end, and only then can the connection be closed, so this is tried several times.
func (st *stage) leftovers(before goleak.Option) (err error) {
	for range 5 {
		st.closeConnections()
		if err = goleak.Find(before); err == nil {
			return nil
		}
	}
	return err
}

// makeNamespace creates a namespace for this session, with the service account that pods need and that no controller
// creates here.
func (st *stage) makeNamespace() {
	st.t.Helper()
	client, err := kubernetes.NewForConfig(st.in.config)
	if err != nil {
		st.t.Fatal(err)
	}
	ctx := st.t.Context()
	ns, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: st.session.program.name + "-" + st.session.variant.name + "-"}}, metav1.CreateOptions{})
	if err != nil {
		st.t.Fatal(err)
	}
	st.in.namespace = ns.Name
	_, err = client.CoreV1().ServiceAccounts(ns.Name).Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	if err != nil {
		st.t.Fatal(err)
	}
	st.closeConnections()
}

// do runs one step and compares the output.
func (st *stage) do(s step) {
	st.t.Helper()
	screen := st.screen
	prompt, command, _ := strings.Cut(s.command, " ")
	switch args := words(command); {
	case prompt == "^C":
		st.cancel()
	case strings.HasPrefix(s.command, startCommand):
		st.run()
		screen = st.screen
	case prompt == "$" && args[0] == "curl":
		screen = st.curl(args)
		defer st.mustBeEmpty(screen, s.command)
	case prompt == "#" && args[0] == "kubectl":
		st.kubectl(args[1:])
	case prompt == "#" && args[0] == "until":
		st.awaitResource(args)
	default:
		st.t.Fatalf("%s: unknown command %q", st.session.file, s.command)
	}
	for _, b := range s.blocks {
		want, got := slices.Clone(b.lines), make([]string, 0, len(b.lines))
		for range want {
			line, err := screen.next()
			if err != nil {
				st.t.Fatalf("after %q the program printed\n%s\nand then: %v; want\n%s", s.command, strings.Join(got, "\n"), err,
					strings.Join(want, "\n"))
			}
			got = append(got, line)
		}
		if b.anyOrder {
			slices.Sort(want)
			slices.Sort(got)
		}
		if !slices.Equal(got, want) {
			st.t.Fatalf("after %q the program printed\n%s\nwant\n%s", s.command, strings.Join(got, "\n"),
				strings.Join(want, "\n"))
		}
	}
}

// mustBeEmpty fails the test if the program printed another line.
func (st *stage) mustBeEmpty(screen *terminal, after string) {
	st.t.Helper()
	if line, err := screen.next(); err == nil {
		st.t.Errorf("after %q the program printed an additional line: %q", after, line)
	}
}

// run starts the program. It ends with the test at the latest.
func (st *stage) run() {
	ctx, cancel := context.WithCancel(context.Background())
	st.cancel, st.screen, st.ended = cancel, newTerminal(), make(chan error, 1)
	in := st.in
	in.out = st.screen
	go func() {
		err := st.session.variant.run(ctx, in)
		st.screen.close()
		st.ended <- err
	}()
	st.t.Cleanup(cancel)
}

// finish waits for the end of the program.
func (st *stage) finish() {
	st.t.Helper()
	st.mustBeEmpty(st.screen, "the last line")
	select {
	case err := <-st.ended:
		if err != nil {
			st.t.Errorf("the program failed: %v", err)
		}
	case <-time.After(outputTimeout):
		st.t.Fatalf("the program has not ended %s after its last line", outputTimeout)
	}
}

// closeConnections closes idle connections.
func (st *stage) closeConnections() {
	if st.transport != nil {
		utilnet.CloseIdleConnectionsFor(st.transport)
	}
}

// kubectl runs a command in the session's namespace.
func (st *stage) kubectl(args []string) {
	st.t.Helper()
	for i, arg := range args {
		if below, ok := strings.CutPrefix(arg, "examples/"); ok {
			args[i] = filepath.FromSlash(below) // a test runs in its own folder
		}
	}
	st.cluster.Kubectl(st.t, append([]string{"--namespace", st.in.namespace}, args...)...)
}

// awaitResource runs "until kubectl api-resources | grep -q NAME; do sleep 1; done".
func (st *stage) awaitResource(args []string) {
	st.t.Helper()
	awaitServed(st.t, st.in.config, strings.TrimSuffix(args[len(args)-5], ";"), true)
}

// awaitServed waits until discovery lists a resource, or no longer does.
func awaitServed(t *testing.T, config *rest.Config, name string, want bool) {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), outputTimeout)
	defer cancel()
	err = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		lists, err := client.ServerPreferredResourcesWithContext(ctx)
		for _, list := range lists {
			for _, r := range list.APIResources {
				if r.Name == name {
					return want, nil
				}
			}
		}
		return !want && err == nil, nil // discovery of a group can fail while it is installed or removed
	})
	if err != nil {
		t.Fatalf("waiting until served is %v for %s: %v", want, name, err)
	}
}

// curl sends a request to the program at the test's address instead of its usual one, and returns the answer, or what
// "jq -r '.[].path'" prints for it.
func (st *stage) curl(args []string) *terminal {
	st.t.Helper()
	path, ok := strings.CutPrefix(args[2], address)
	if !ok {
		st.t.Fatalf("%q is not a request to the program, whose address is %s", args[2], address)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + st.in.listener.Addr().String() + path)
	if err != nil {
		st.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		st.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		st.t.Fatalf("%q was answered %s: %s", args[2], resp.Status, body)
	}
	screen := newTerminal()
	defer screen.close()
	if len(args) == 3 {
		screen.Write(body)
		return screen
	}
	var answer any
	if err := json.Unmarshal(body, &answer); err != nil {
		st.t.Fatal(err)
	}
	for _, v := range follow(answer, strings.Split(strings.TrimPrefix(args[len(args)-1], "."), ".")) {
		fmt.Fprintln(screen, v)
	}
	return screen
}

// follow walks a path such as "[].spec.containers[].image" through decoded JSON.
func follow(v any, path []string) []any {
	if len(path) == 0 {
		return []any{v}
	}
	name, each := strings.CutSuffix(path[0], "[]")
	if name != "" {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	if !each {
		return follow(v, path[1:])
	}
	var found []any
	list, _ := v.([]any)
	for _, item := range list {
		found = append(found, follow(item, path[1:])...)
	}
	return found
}
