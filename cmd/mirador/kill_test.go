package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/dev/testcluster"
)

// writer changes ConfigMaps of one namespace of a real cluster.
type writer struct {
	api interface {
		Create(context.Context, *corev1.ConfigMap, metav1.CreateOptions) (*corev1.ConfigMap, error)
		Update(context.Context, *corev1.ConfigMap, metav1.UpdateOptions) (*corev1.ConfigMap, error)
		Delete(context.Context, string, metav1.DeleteOptions) error
	}
	n int
}

// step creates, changes or deletes one object.
func (w *writer) step(ctx context.Context) error {
	name := func(i int) string { return fmt.Sprintf("cm-%03d", i%40) }
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name(w.n),
		Labels: map[string]string{"even": fmt.Sprint(w.n%2 == 0)}},
		Data: map[string]string{"n": fmt.Sprint(w.n)}}
	w.n++
	_, err := w.api.Update(ctx, cm, metav1.UpdateOptions{})
	if err != nil {
		_, err = w.api.Create(ctx, cm, metav1.CreateOptions{})
	}
	if err == nil && w.n%5 == 0 {
		err = w.api.Delete(ctx, name(w.n-3), metav1.DeleteOptions{})
	}
	return err
}

// sight is a list that was read before the kill, and the version from which a client could resume.
type sight struct {
	base, version, token string
	objects              objects
}

// crowd has clients that read, watch and join until the daemon is killed.
type crowd struct {
	d      *daemon
	config []byte
	ns     string
	over   chan struct{} // closed before the daemon is killed

	mu        sync.Mutex
	sights    []sight
	slowest   time.Duration // of two consecutive reads
	watched   int
	joined    map[string]bool // the answered requests: true for a join, false for a leave
	undecided string          // the request without an answer
}

// gone reports whether the daemon was killed; an error before that fails the test.
func (c *crowd) gone(t *testing.T, what string, err error) bool {
	select {
	case <-c.over:
		return true
	default:
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		return err != nil
	}
}

func (c *crowd) read(t *testing.T, base, namespace string) {
	path := base + "/api/v1/namespaces/" + namespace + "/configmaps"
	for {
		asked := time.Now()
		got, version, err := list(c.d.client, c.d.at+path)
		if err != nil && strings.Contains(err.Error(), "answered 429") {
			err = nil // the machine is busy
			got = nil
		}
		if c.gone(t, "list", err) {
			return
		}
		if got == nil {
			continue
		}
		var page metav1.List
		_, b, err := c.d.get(path + "?limit=1")
		if err == nil {
			err = json.Unmarshal(b, &page)
		}
		if c.gone(t, "page", err) {
			return
		}
		c.mu.Lock()
		c.sights = append(c.sights, sight{base, version, page.Continue, got})
		c.slowest = max(c.slowest, time.Since(asked))
		c.mu.Unlock()
	}
}

func (c *crowd) watch(t *testing.T, base string) {
	for {
		resp, err := c.d.client.Get(c.d.at + base + "/api/v1/configmaps" + watchWithInitialState + "&timeoutSeconds=1")
		if c.gone(t, "watch", err) {
			if err == nil {
				resp.Body.Close()
			}
			return
		}
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var e metav1.WatchEvent
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil ||
				e.Type == "ERROR" && !strings.Contains(string(e.Object.Raw), `"code":410`) {
				c.gone(t, "watch", fmt.Errorf("%.200s: %w", lines.Bytes(), errors.Join(err)))
			}
			c.mu.Lock()
			c.watched++
			c.mu.Unlock()
		}
		resp.Body.Close()
	}
}

// moves joins and removes clusters, and records the answers.
func (c *crowd) moves(t *testing.T) {
	note := func(asked, name string, in bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.undecided = asked; asked == "" {
			c.joined[name] = in
		}
	}
	join := func(name string) error {
		note(name, name, true)
		code, err := c.d.join(name, c.config)
		if err == nil && code != http.StatusCreated {
			err = fmt.Errorf("answered %d", code)
		}
		if err == nil {
			note("", name, true)
		}
		return err
	}
	leave := func(name string) error {
		note(name, name, false)
		code, err := c.d.leave(name)
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("answered %d", code)
		}
		if err == nil {
			note("", name, false)
		}
		return err
	}
	in := map[string]bool{}
	for i := 0; ; i++ {
		// Only a few names are used, so that a slow machine does not get hundreds of clusters.
		name := fmt.Sprintf("c%d", i%13)
		move, what := join, "join"
		if in[name] {
			move, what = leave, "leave"
		}
		if err := move(name); err != nil {
			c.gone(t, what, err)
			return
		}
		in[name] = !in[name]
		if i%3 != 2 {
			continue
		}
		if name = fmt.Sprintf("c%d", (i-1)%13); in[name] {
			if err := leave(name); err != nil {
				c.gone(t, "leave", err)
				return
			}
			in[name] = false
		}
	}
}

// enough reports whether enough has happened before the kill.
func (c *crowd) enough() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.sights) > 30 && c.watched > 200 && len(c.joined) >= 7 {
		return ""
	}
	return fmt.Sprintf("%d lists, %d events and %d joins", len(c.sights), c.watched, len(c.joined))
}

// follower is client-go's informer of the daemon.
type follower struct {
	base   string
	lister corelisters.ConfigMapLister
}

func follow(t *testing.T, ctx context.Context, wg *sync.WaitGroup, d *daemon, base string) follower {
	t.Helper()
	cfg := &rest.Config{Host: d.at + base}
	k, err := kubernetes.NewForConfigAndClient(cfg, httpClient(t, cfg))
	check(t, err)
	f := informers.NewSharedInformerFactory(k, 0)
	maps := f.Core().V1().ConfigMaps()
	out := follower{base, maps.Lister()}
	maps.Informer()
	f.Start(ctx.Done())
	wg.Go(func() { <-ctx.Done(); f.Shutdown() })
	for _, ok := range f.WaitForCacheSync(ctx.Done()) {
		if !ok {
			t.Fatal("client-go's informer does not sync")
		}
	}
	return out
}

// knows returns the informer's objects with their versions in their own cluster.
func (f follower) knows(t *testing.T) objects {
	t.Helper()
	all, err := f.lister.List(everything)
	check(t, err)
	out := objects{}
	for _, cm := range all {
		version := cm.ResourceVersion
		if v, ok := cm.Annotations["mirador.dev/resource-version"]; ok {
			version = v
		}
		out[cm.Namespace+"/"+cm.Name] = version
	}
	return out
}

// truth returns what an informer should have, as read from the cluster; every member is the same cluster.
func truth(t *testing.T, k *kubernetes.Clientset, base string, members []string) objects {
	t.Helper()
	all, err := k.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
	check(t, err)
	out := objects{}
	for _, cm := range all.Items {
		if base != "/fleet" {
			out[cm.Namespace+"/"+cm.Name] = cm.ResourceVersion
			continue
		}
		for _, m := range members {
			out[m+"."+cm.Namespace+"/"+cm.Name] = cm.ResourceVersion
		}
	}
	return out
}

func TestDaemonKilledUnderLoadKeepsAnsweredJoins(t *testing.T) {
	t.Parallel()
	cluster := testcluster.Start(t, testcluster.WithoutControllers())
	real, k := clients(t, cluster)
	ns := cluster.Namespace(t)
	w := &writer{api: k.CoreV1().ConfigMaps(ns)}
	for range 40 {
		check(t, w.step(t.Context()))
	}
	config := kubeconfig(t, cluster, "killed-under-load")
	args, _ := stateArgs(t, freePort(t))
	d := begin(t, plain(t), args...)
	if code, err := d.join("eu", config); err != nil || code != http.StatusCreated {
		t.Fatalf("join: %d, %v", code, err)
	}
	d.ready(t, "eu")

	ctx, cancel := context.WithCancel(t.Context())
	var informed sync.WaitGroup
	defer informed.Wait()
	defer cancel()
	followers := []follower{follow(t, ctx, &informed, d, "/clusters/eu"), follow(t, ctx, &informed, d, "/fleet")}

	c := &crowd{d: d, config: config, ns: ns, over: make(chan struct{}), joined: map[string]bool{"eu": true}}
	var crowded sync.WaitGroup
	for _, base := range []string{"/clusters/eu", "/fleet"} {
		namespace := ns
		if base == "/fleet" {
			namespace = "eu." + ns
		}
		crowded.Go(func() { c.read(t, base, namespace) })
		for range 3 {
			crowded.Go(func() { c.watch(t, base) })
		}
	}
	crowded.Go(func() { c.moves(t) })
	begun := time.Now()
	until(t, func() string {
		check(t, w.step(t.Context()))
		return c.enough()
	})
	loaded := time.Since(begun)
	close(c.over)
	d.kill(t)
	crowded.Wait()
	for range 25 { // changes while the daemon is down
		check(t, w.step(t.Context()))
	}

	killed := time.Now()
	again := begin(t, d.client, args...)
	members := again.members(t)
	for name, in := range c.joined {
		if name != c.undecided && slices.Contains(members, name) != in {
			t.Errorf("the daemon answered that cluster %s is a member: %v; after the restart there are %q", name, in, members)
		}
	}
	again.ready(t, members...)
	ready := time.Since(killed)
	again.equals(t, "eu", real, cluster.Config().Host)
	for _, f := range followers {
		var all converging
		until(t, func() string {
			if diff := all.differs(f.knows(t), truth(t, k, f.base, members)); diff != "" {
				return "the informer on " + f.base + ": " + diff
			}
			return ""
		})
	}
	informedAfter := time.Since(killed)
	gone, went := 0, 0
	for i := 0; i < len(c.sights); i += max(1, len(c.sights)/30) {
		if c.sights[i].goesOn(t, again, ns) {
			went++
		} else {
			gone++
		}
	}
	t.Logf("%d clusters were back after %v, and stock informers knew the truth after %v; of the versions from before "+
		"the kill %d are gone and %d went on; %d lists were read, two of them in at most %v, and %d events watched in %v "+
		"before it",
		len(members), ready.Round(time.Millisecond), informedAfter.Round(time.Millisecond), gone, went, len(c.sights),
		c.slowest.Round(time.Millisecond), c.watched, loaded.Round(time.Millisecond))
}

// goesOn sends the requests of a client that read a list before the kill: either its version is gone, or the events
// lead to the current state.
func (s *sight) goesOn(t *testing.T, d *daemon, ns string) bool {
	t.Helper()
	if s.base == "/fleet" {
		ns = "eu." + ns
	}
	path := s.base + "/api/v1/namespaces/" + ns + "/configmaps"
	if code, b, err := d.get(path + "?limit=1&continue=" + url.QueryEscape(s.token)); s.token != "" &&
		(err != nil || code != http.StatusGone) {
		t.Errorf("a page of before the kill: %d, %v: %.200s", code, err, b)
	}
	got, _, err := list(d.client, d.at+path+"?resourceVersionMatch=Exact&resourceVersion="+s.version)
	if err == nil && differs(got, s.objects) != "" {
		t.Errorf("%s at exactly %s is now something else: %s", path, s.version, differs(got, s.objects))
	} else if err != nil && !strings.Contains(err.Error(), "answered 410") {
		t.Errorf("%s at exactly %s: %v", path, s.version, err)
	}
	want, _, err := list(d.client, d.at+path+"?resourceVersionMatch=NotOlderThan&resourceVersion="+s.version)
	check(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.at+path+"?watch=true&resourceVersion="+s.version, nil)
	check(t, err)
	resp, err := d.client.Do(r)
	check(t, err)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	versions := func(from objects) objects {
		out := objects{}
		for k, raw := range from {
			out[k] = versionOf(t, raw)
		}
		return out
	}
	now := versions(s.objects)
	for differs(now, versions(want)) != "" {
		if !lines.Scan() {
			t.Errorf("%s from %s does not lead to the current state: %v; %s", path, s.version, lines.Err(),
				differs(now, versions(want)))
			return true
		}
		var e metav1.WatchEvent
		check(t, json.Unmarshal(lines.Bytes(), &e))
		switch e.Type {
		case "ERROR":
			if !strings.Contains(string(e.Object.Raw), `"code":410`) {
				t.Errorf("%s from %s: %s", path, s.version, e.Object.Raw)
			}
			return false
		case "DELETED":
			delete(now, keyOf(e.Object.Raw))
		default:
			now[keyOf(e.Object.Raw)] = versionOf(t, string(e.Object.Raw))
		}
	}
	return true
}

func versionOf(t *testing.T, raw string) string {
	t.Helper()
	var o metav1.PartialObjectMetadata
	check(t, json.Unmarshal([]byte(raw), &o))
	if v, ok := o.Annotations["mirador.dev/resource-version"]; ok {
		return v
	}
	return o.ResourceVersion
}
