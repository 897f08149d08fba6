// Package daemon runs the real daemon over simulated and real clusters and asks it as its
// clients do, over its socket.
//
//	fleet, err := daemon.Start(ctx, dir, daemon.Size{Clusters: 10, Pods: 100_000, Real: 2, RealPods: 10_000})
//	defer fleet.Stop()
//	p50, p99, err := fleet.Get(ctx, 1000)
package daemon

import (
	"bufio"
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
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mirador-k8s/mirador/dev/bench/cluster"
	"github.com/mirador-k8s/mirador/dev/bench/feed"
	"github.com/mirador-k8s/mirador/dev/bench/measure"
	"github.com/mirador-k8s/mirador/dev/bench/program"
	"github.com/mirador-k8s/mirador/dev/bench/rights"
)

// Size is how much is mirrored.
type Size struct {
	Clusters, Pods int // simulated clusters and the pods in all of them
	Real, RealPods int // real clusters and the pods in each
	// Namespaces is how many namespaces each simulated cluster has; 0 means those of the templates.
	Namespaces int
	// Users have rights in the simulated clusters. If there are any, the daemon authenticates them, and an administrator.
	Users []rights.User
	// Samples are numbers of namespaces. For each there are as many simulated clusters again, with a tenth of the pods in
	// so many namespaces. The users have no rights in them.
	Samples []int
	// Flags are further flags of the daemon.
	Flags []string
}

// templates is how many workloads a simulated cluster has: 100 pods for each if it has 10,000.
const templates = 100

// Fleet is a running daemon and the clusters that it mirrors.
type Fleet struct {
	size  Size
	sims  []*feed.Cluster
	stops []func()
	// kubeconfigs are the paths of administrators' kubeconfigs of the real clusters.
	kubeconfigs []string

	cmd    *exec.Cmd
	url    atomic.Pointer[string]
	token  string // of an administrator; "" if no credentials are needed
	client *http.Client
	// SyncTime is the time from the daemon's start until everything was mirrored.
	SyncTime time.Duration
}

// Start starts everything and waits until it is mirrored. Real clusters need bin/devcluster; the daemon is $MIRADOR or
// bin/mirador in a parent folder.
func Start(ctx context.Context, dir string, size Size) (_ *Fleet, err error) {
	f := newFleet(size)
	defer func() {
		if err != nil {
			f.Stop()
		}
	}()
	binary, err := program.Find("MIRADOR", "mirador")
	if err != nil {
		return nil, err
	}
	configs := filepath.Join(dir, "clusters")
	if err := os.MkdirAll(configs, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of kubeconfigs: %w", err)
	}
	if err := f.simulate(configs); err != nil {
		return nil, err
	}
	for i := range size.Real {
		if err := f.startReal(ctx, dir, configs, i); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	if err := f.startDaemon(binary, dir, configs); err != nil {
		return nil, err
	}
	if err := f.waitSynced(ctx); err != nil {
		return nil, err
	}
	f.SyncTime = time.Since(began)
	return f, nil
}

// Over starts the daemon over the clusters of a folder of kubeconfigs. It does not wait until they are mirrored.
func Over(dir, configs string, flags ...string) (*Fleet, error) {
	binary, err := program.Find("MIRADOR", "mirador")
	if err != nil {
		return nil, err
	}
	f := newFleet(Size{Flags: flags})
	if err := f.startDaemon(binary, dir, configs); err != nil {
		f.Stop()
		return nil, err
	}
	return f, nil
}

func newFleet(size Size) *Fleet {
	return &Fleet{size: size,
		client: &http.Client{Transport: &http.Transport{DisableCompression: true, ReadBufferSize: 256 << 10,
			MaxIdleConnsPerHost: 16}}}
}

func (f *Fleet) simulate(configs string) error {
	sims, err := f.size.Simulated()
	if err != nil {
		return err
	}
	for i, sim := range sims {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("listen for a simulated cluster: %w", err)
		}
		srv := &http.Server{Handler: sim}
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = srv.Serve(l) // it always returns an error after Close
		}()
		f.stops = append(f.stops, func() { srv.Close(); <-served })
		f.sims = append(f.sims, sim)
		name := simName(i)
		if err := os.WriteFile(filepath.Join(configs, name+".yaml"),
			[]byte(feed.Kubeconfig(name, "http://"+l.Addr().String())), 0o600); err != nil {
			return fmt.Errorf("write the kubeconfig of a simulated cluster: %w", err)
		}
	}
	return nil
}

// Simulated makes the simulated clusters: those with all pods, and then those of each sample.
func (s *Size) Simulated() (all []*feed.Cluster, err error) {
	add := func(pods, namespaces int, users []rights.User) {
		for i := 0; i < s.Clusters && err == nil; i++ {
			var c *feed.Cluster
			c, err = s.cluster(i, pods, namespaces, users)
			all = append(all, c)
		}
	}
	if s.Clusters > 0 {
		add(s.Pods/s.Clusters, s.Namespaces, s.Users)
		for _, namespaces := range s.Samples {
			add(s.Pods/s.Clusters/10, namespaces, nil)
		}
	}
	return all, err
}

func (s *Size) cluster(i, pods, namespaces int, users []rights.User) (*feed.Cluster, error) {
	if namespaces == 0 {
		return feed.NewCluster(feed.Seed+uint64(i), pods, templates), nil
	}
	c := feed.NewCluster(feed.Seed+uint64(i), pods, namespaces)
	c.InNamespaces(namespaces)
	if len(s.Users) == 0 {
		return c, nil
	}
	described := rights.Cluster{Number: i, Clusters: s.Clusters, Namespaces: namespaces, Pods: pods,
		Namespace: c.Namespace, Pod: c.PodName}
	return c, c.SetRights(described.Objects(users))
}

func simName(i int) string { return "sim" + strconv.Itoa(i) }

func realName(i int) string { return "real" + strconv.Itoa(i) }

func (f *Fleet) startReal(ctx context.Context, dir, configs string, i int) error {
	own := filepath.Join(dir, realName(i))
	if err := os.MkdirAll(own, 0o700); err != nil {
		return fmt.Errorf("make the folder of a real cluster: %w", err)
	}
	c, err := cluster.Start(ctx, own)
	if err != nil {
		return err
	}
	f.stops = append(f.stops, c.Stop)
	f.kubeconfigs = append(f.kubeconfigs, c.Kubeconfig)
	if err := c.Fill(ctx, f.size.RealPods); err != nil {
		return err
	}
	config, err := os.ReadFile(c.Kubeconfig)
	if err == nil {
		err = os.WriteFile(filepath.Join(configs, realName(i)+".yaml"), config, 0o600)
	}
	if err != nil {
		return fmt.Errorf("copy the kubeconfig of a real cluster: %w", err)
	}
	return nil
}

// accessConfig makes a user an administrator.
const accessConfig = "apiVersion: mirador.dev/v1alpha1\nkind: AccessConfiguration\n" +
	"bindings: [{role: administrator, users: [%s]}]\n"

// userFlags writes the files with tokens and rights of the daemon's users, and returns the flags that name them.
func (f *Fleet) userFlags(dir string) ([]string, error) {
	if len(f.size.Users) == 0 {
		return nil, nil
	}
	root := rights.Administrator()
	f.token = root.Token()
	var tokens strings.Builder
	for i, u := range append(slices.Clone(f.size.Users), root) {
		fmt.Fprintf(&tokens, "%s,%s,%d,%q\n", u.Token(), u.Name, i, strings.Join(u.Groups, ","))
	}
	users, access := filepath.Join(dir, "tokens.csv"), filepath.Join(dir, "access.yaml")
	if err := errors.Join(os.WriteFile(users, []byte(tokens.String()), 0o600),
		os.WriteFile(access, fmt.Appendf(nil, accessConfig, root.Name), 0o600)); err != nil {
		return nil, fmt.Errorf("write the files of the daemon's users: %w", err)
	}
	return []string{"--token-auth-file", users, "--access-file", access}, nil
}

// startDaemon starts the daemon and reads its address from its output.
func (f *Fleet) startDaemon(binary, dir, configs string) error {
	flags, err := f.userFlags(dir)
	if err != nil {
		return err
	}
	flags = append(append([]string{"serve", "--folder", configs, "--listen", "127.0.0.1:0"}, flags...), f.size.Flags...)
	f.cmd = exec.Command(binary, flags...)
	f.cmd.Env = append(os.Environ(), "HOME="+configs)
	out, err := f.cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("read the daemon's output: %w", err)
	}
	var said program.Output
	f.cmd.Stderr = &said
	if err := f.cmd.Start(); err != nil {
		f.cmd = nil
		return fmt.Errorf("start the daemon: %w", err)
	}
	lines := bufio.NewScanner(out)
	found := false
	for !found && lines.Scan() {
		if _, rest, ok := strings.Cut(lines.Text(), "http://"); ok {
			url := "http://" + strings.TrimSuffix(rest, "/")
			f.url.Store(&url)
			found = true
		}
	}
	if !found {
		return fmt.Errorf("the daemon printed no address: %s", &said)
	}
	go io.Copy(io.Discard, out) // ends with the daemon
	return nil
}

// waitSynced waits until every pod is mirrored and the daemon is ready.
func (f *Fleet) waitSynced(ctx context.Context) error {
	want := f.size.Pods + len(f.size.Samples)*f.size.Pods/10 + f.size.Real*f.size.RealPods
	have := 0
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		if have, err = f.mirrored(ctx); err != nil {
			return err
		}
		if have == want && f.Answers(ctx, "/readyz") {
			return nil
		}
	}
	return fmt.Errorf("the daemon has %d of %d pods after five minutes", have, want)
}

// Answers reports whether the answer to a request is 200.
func (f *Fleet) Answers(ctx context.Context, path string) bool {
	_, err := f.read(ctx, path, "", false)
	return err == nil
}

// mirrored returns how many pods the daemon has.
func (f *Fleet) mirrored(ctx context.Context) (pods int, err error) {
	body, err := f.open(ctx, "/clusters", "", false)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	var report struct {
		Clusters []struct {
			Resources []struct {
				Resource, Group string
				Synced          bool
				Objects         int
			}
		}
	}
	if err := json.NewDecoder(body).Decode(&report); err != nil {
		return 0, fmt.Errorf("read the daemon's report: %w", err)
	}
	for _, c := range report.Clusters {
		for _, r := range c.Resources {
			if r.Resource == "pods" && r.Group == "" && r.Synced {
				pods += r.Objects
			}
		}
	}
	return pods, nil
}

// Stop stops the daemon and all clusters.
func (f *Fleet) Stop() {
	if f.cmd != nil {
		_ = f.cmd.Process.Signal(os.Interrupt) // it may have ended already
		_ = f.cmd.Wait()
	}
	f.client.CloseIdleConnections()
	for i := len(f.stops) - 1; i >= 0; i-- {
		f.stops[i]()
	}
}

// CPU returns the processor time that the daemon has used.
func (f *Fleet) CPU() time.Duration { return measure.CPUOf(f.cmd.Process.Pid) }

// Metric returns the value of one of the daemon's metrics without labels.
func (f *Fleet) Metric(ctx context.Context, name string) (float64, error) {
	body, err := f.open(ctx, "/metrics", "text/plain", false)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, errors.Join(fmt.Errorf("the daemon has no metric %s", name), lines.Err())
}

// RSS returns the daemon's resident memory in bytes.
func (f *Fleet) RSS() (float64, error) {
	if rss := measure.RSS(f.cmd.Process.Pid); rss > 0 {
		return rss, nil
	}
	return 0, errors.New("read the daemon's memory: not supported on this system")
}
