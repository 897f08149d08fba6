package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/connrotation"

	"github.com/mirador-k8s/mirador/daemon/server"
	"github.com/mirador-k8s/mirador/dev/testcluster"
)

// waitLimit is how long a test waits for something that should take seconds. A stock informer whose server was away may
// wait for two minutes: up to one before its watch is opened again, and one more before it lists.
const waitLimit = 3 * time.Minute

// built is the program without the race detector, which would change its behaviour under load. TestMain creates and
// removes its folder.
var built struct {
	dir  string
	once sync.Once
	err  error
}

func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(built.dir, "mirador")
	built.once.Do(func() {
		if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, ".").CombinedOutput(); err != nil {
			built.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatalf("build mirador: %v", built.err)
	}
	return path
}

// daemon is a running mirador serve.
type daemon struct {
	at     string // http://address
	cmd    *exec.Cmd
	out    *bufio.Reader
	log    string // the file of its standard error
	client *http.Client
	ended  bool
}

var pageAddress = regexp.MustCompile(`the page: +(https?://[^/]+)/`)

// begin starts the program. Unless it is killed before, it is stopped gracefully at the end of the test.
func begin(t *testing.T, client *http.Client, args ...string) *daemon {
	t.Helper()
	d := &daemon{client: client, log: filepath.Join(t.TempDir(), "log")}
	logs, err := os.Create(d.log)
	check(t, err)
	defer logs.Close()
	d.cmd = exec.Command(program(t), append([]string{"serve"}, args...)...)
	d.cmd.Stderr = logs
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := d.cmd.StdoutPipe()
	check(t, err)
	check(t, d.cmd.Start())
	t.Cleanup(func() { d.stop(t) })
	d.out = bufio.NewReader(out)
	line, err := d.out.ReadString('\n')
	m := pageAddress.FindStringSubmatch(line)
	if err != nil || m == nil {
		t.Fatalf("the daemon said %q, %v, and\n%s", line, err, d.said(t))
	}
	d.at = m[1]
	return d
}

func (d *daemon) said(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(d.log)
	check(t, err)
	return string(b)
}

// kill kills the daemon.
func (d *daemon) kill(t *testing.T) {
	t.Helper()
	check(t, d.cmd.Process.Kill())
	if err := d.cmd.Wait(); err == nil {
		t.Error("a killed daemon ended without an error")
	}
	d.ended = true
}

// stop stops the daemon gracefully, and returns its output after the address.
func (d *daemon) stop(t *testing.T) string {
	t.Helper()
	if d.ended {
		return ""
	}
	d.ended = true
	check(t, d.cmd.Process.Signal(syscall.SIGTERM))
	rest, err := io.ReadAll(d.out)
	check(t, err)
	if err := d.cmd.Wait(); err != nil {
		t.Errorf("the daemon ended with %v; it said:\n%s", err, d.said(t))
	}
	return string(rest)
}

// refused runs the program, which must not start, and returns its exit code and its output.
func refused(t *testing.T, args ...string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, program(t), append([]string{"serve"}, args...)...).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() < 0 {
		t.Fatalf("mirador serve %q: %v\n%s", args, err, out)
	}
	return exit.ExitCode(), string(out)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// until waits until f returns "", and fails with its last result.
func until(t *testing.T, missing func() string) {
	t.Helper()
	untilEvery(t, 20*time.Millisecond, missing)
}

func untilEvery(t *testing.T, pause time.Duration, missing func() string) {
	t.Helper()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for late := time.Now().Add(waitLimit); ; {
		what := missing()
		if what == "" {
			return
		}
		if time.Now().After(late) {
			t.Fatal(what)
		}
		<-tick.C
	}
}

// httpClient returns a client with its own connections, which are closed at the end of the test.
func httpClient(t *testing.T, cfg *rest.Config) *http.Client {
	t.Helper()
	conns := connrotation.NewDialer((&net.Dialer{}).DialContext)
	cfg = rest.CopyConfig(cfg)
	cfg.Dial = conns.DialContext
	client, err := rest.HTTPClientFor(cfg)
	check(t, err)
	t.Cleanup(func() {
		client.CloseIdleConnections()
		conns.CloseAll()
	})
	return client
}

// plain returns a client of a daemon on this machine.
func plain(t *testing.T) *http.Client {
	t.Helper()
	tr := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// clients returns a client of a real cluster.
func clients(t *testing.T, c *testcluster.Cluster) (*http.Client, *kubernetes.Clientset) {
	t.Helper()
	h := httpClient(t, c.Config())
	k, err := kubernetes.NewForConfigAndClient(c.Config(), h)
	check(t, err)
	return h, k
}

// kubeconfig returns a kubeconfig without files, with a user for the daemon, by which the audit log identifies it. It
// has the named contexts, all of the same cluster.
func kubeconfig(t *testing.T, c *testcluster.Cluster, user string, contexts ...string) []byte {
	t.Helper()
	cfg, err := clientcmd.LoadFromFile(c.Kubeconfig())
	check(t, err)
	check(t, clientcmdapi.FlattenConfig(cfg))
	for _, u := range cfg.AuthInfos {
		u.Impersonate, u.ImpersonateGroups = user, []string{"system:masters"}
	}
	for _, name := range contexts {
		cfg.Contexts[name] = cfg.Contexts[cfg.CurrentContext]
	}
	if len(contexts) > 0 {
		delete(cfg.Contexts, cfg.CurrentContext)
		cfg.CurrentContext = contexts[0]
	}
	b, err := clientcmd.Write(*cfg)
	check(t, err)
	return b
}

// get sends a request. It returns connection errors, because the daemon may be killed meanwhile.
func (d *daemon) get(path string) (int, []byte, error) { return fetch(d.client, d.at+path, "") }

func fetch(client *http.Client, url, accept string) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, err
	}
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	resp, err := client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, b, err
}

// join joins a cluster by the API, as the page and the CLI do.
func (d *daemon) join(name string, kubeconfig []byte) (int, error) {
	body, err := json.Marshal(map[string]string{"name": name, "kubeconfig": string(kubeconfig)})
	if err != nil {
		return 0, err
	}
	return d.send(http.MethodPost, "/clusters", body)
}

func (d *daemon) leave(name string) (int, error) {
	return d.send(http.MethodDelete, "/clusters/"+name, nil)
}

func (d *daemon) send(method, path string, body []byte) (int, error) {
	r, err := http.NewRequest(method, d.at+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := d.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// report returns the daemon's report of its clusters.
func (d *daemon) report(t *testing.T) (r server.Report) {
	t.Helper()
	code, b, err := d.get("/clusters")
	if err != nil || code != http.StatusOK {
		t.Fatalf("/clusters: %d, %v; the daemon said:\n%s", code, err, d.said(t))
	}
	check(t, json.Unmarshal(b, &r))
	return r
}

// members returns the names of the clusters.
func (d *daemon) members(t *testing.T) (names []string) {
	t.Helper()
	for _, c := range d.report(t).Clusters {
		names = append(names, c.Name)
	}
	return names
}

// ready waits until clusters are mirrored.
func (d *daemon) ready(t *testing.T, names ...string) {
	t.Helper()
	until(t, func() string {
		r := d.report(t)
		for _, name := range names {
			i := slices.IndexFunc(r.Clusters, func(c server.ClusterReport) bool { return c.Name == name })
			if i < 0 {
				return "there is no cluster " + name
			}
			if c := r.Clusters[i]; c.State != "ready" {
				return fmt.Sprintf("cluster %s is %s: %s", name, c.State, c.Error)
			}
		}
		return ""
	})
}

// objects are the JSON of the items of a list, by namespace and name.
type objects map[string]string

// list reads a list. A status other than 200 is an error.
func list(client *http.Client, url string) (out objects, version string, err error) {
	code, b, err := fetch(client, url, "")
	if err != nil {
		return nil, "", err
	}
	if code != http.StatusOK {
		return nil, "", fmt.Errorf("%s is answered %d: %.300s", url, code, b)
	}
	var l struct {
		Metadata struct{ ResourceVersion string }
		Items    []json.RawMessage
	}
	if err := json.Unmarshal(b, &l); err != nil {
		return nil, "", fmt.Errorf("%s: %w", url, err)
	}
	out = objects{}
	for _, raw := range l.Items {
		out[keyOf(raw)] = string(raw)
	}
	return out, l.Metadata.ResourceVersion, nil
}

func keyOf(raw []byte) string {
	var o struct {
		Metadata struct{ Namespace, Name string }
	}
	if json.Unmarshal(raw, &o) != nil {
		return "?"
	}
	return o.Metadata.Namespace + "/" + o.Metadata.Name
}

// differs describes the difference of two states, "" if they are equal.
func differs(got, want objects) string {
	var out []string
	for k, w := range want {
		if g, ok := got[k]; !ok {
			out = append(out, k+" is missing")
		} else if g != w {
			out = append(out, fmt.Sprintf("%s is\n%.400s\nand should be\n%.400s", k, g, w))
		}
	}
	for k := range got {
		if _, ok := want[k]; !ok {
			out = append(out, k+" is there and should not be")
		}
	}
	slices.Sort(out)
	return strings.Join(out[:min(len(out), 3)], "; ")
}

// converging compares two states repeatedly while other tests write to the cluster: an object of the first comparison
// counts until the states have agreed on it once.
type converging struct {
	open map[string]bool // nil before the first comparison
}

func (c *converging) differs(got, want objects) string {
	if c.open == nil {
		c.open = map[string]bool{}
		for _, all := range []objects{got, want} {
			for k := range all {
				c.open[k] = true
			}
		}
	}
	gotOpen, wantOpen := objects{}, objects{}
	for k := range c.open {
		g, inGot := got[k]
		w, inWant := want[k]
		if inGot == inWant && g == w {
			delete(c.open, k)
			continue
		}
		if inGot {
			gotOpen[k] = g
		}
		if inWant {
			wantOpen[k] = w
		}
	}
	return differs(gotOpen, wantOpen)
}

func TestConvergingStatesAreDistinguishedFromOthers(t *testing.T) {
	var c converging
	for i, look := range []struct {
		got, want objects
		diff      string
	}{
		{objects{"a": "1", "b": "1", "gone": "1", "stale": "1"}, objects{"a": "1", "b": "2", "new": "1", "stale": "2"},
			"b is\n1\nand should be\n2; gone is there and should not be; new is missing"},
		{objects{"b": "2", "stale": "1"}, objects{"a": "2", "b": "2", "new": "1", "stale": "2"},
			"new is missing; stale is\n1\nand should be\n2"},
		{objects{"new": "1", "stale": "1"}, objects{"b": "3", "new": "1", "newer": "1", "stale": "3"},
			"stale is\n1\nand should be\n3"},
		{objects{"stale": "3"}, objects{"stale": "3", "newer": "1"}, ""},
	} {
		if diff := c.differs(look.got, look.want); diff != look.diff {
			t.Errorf("comparison %d found %q, want %q", i, diff, look.diff)
		}
	}
}

// equals waits until all mirrored objects of a cluster equal those of the cluster, byte for byte.
func (d *daemon) equals(t *testing.T, name string, real *http.Client, host string) {
	t.Helper()
	r := d.report(t)
	i := slices.IndexFunc(r.Clusters, func(c server.ClusterReport) bool { return c.Name == name })
	if i < 0 || len(r.Clusters[i].Resources) < 40 {
		t.Fatalf("cluster %s is not there, or has few resources: %+v", name, r.Clusters)
	}
	for _, res := range r.Clusters[i].Resources {
		path := "/apis/" + res.Group + "/" + res.Version + "/" + res.Resource
		if res.Group == "" {
			path = "/api/" + res.Version + "/" + res.Resource
		}
		var all converging
		until(t, func() string {
			want, _, err := list(real, host+path)
			if err != nil {
				return err.Error()
			}
			got, _, err := list(d.client, d.at+"/clusters/"+name+path)
			if err != nil {
				return err.Error()
			}
			return all.differs(got, want)
		})
	}
}

// freePort returns an address that a daemon can use again after a restart.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer l.Close()
	return l.Addr().String()
}
