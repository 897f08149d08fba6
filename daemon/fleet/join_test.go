package fleet_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/object"
)

func TestJoinedClusterIsMirrored(t *testing.T) {
	inWorld(t, fleet.Options{}, func(w *world) {
		s, c := w.joined("eu")
		create(t, s, pod("a", "one"), pod("b", "two"))
		h := w.untilState(c, fleet.Ready)
		if h.Resources < 30 || h.Synced != h.Resources || h.Objects != 2 || h.ServerVersion != "v1.37.2" ||
			h.Err != "" {
			t.Errorf("Health = %+v", h)
		}
		if c.Origin() != (fleet.Origin{Kind: "kubeconfig", Detail: "test"}) {
			t.Errorf("Origin = %+v", c.Origin())
		}
		if !strings.Contains(string(c.Version()), `"gitVersion":"v1.37.2"`) {
			t.Errorf("Version = %s", c.Version())
		}
		pods := w.resource(c, podsGVR)
		var found []string
		for o := range pods.Snapshot().ByIndex(fleet.NamespaceIndex, "b") {
			found = append(found, string(o.Bytes))
		}
		if len(found) != 1 || !strings.Contains(found[0], `"name":"two"`) {
			t.Errorf("in namespace b: %q", found)
		}
		e, ok := pods.Entry("a/one")
		if !ok || !strings.HasPrefix(string(fleet.Bytes(e, []byte("x"))), `x{"kind":"Pod","apiVersion":"v1"`) {
			t.Errorf("Bytes = %.60s", fleet.Bytes(e, []byte("x")))
		}
		if info := pods.Info(); info.Kind != "Pod" || !info.Namespaced || info.SingularName != "pod" ||
			info.Version != "v1" ||
			!slices.Equal(info.Verbs, []string{"get", "list", "watch"}) || pods.GVK().Kind != "Pod" {
			t.Errorf("Info = %+v", info)
		}
	})
}

func TestHandlerReceivesChangesAndSinceReplaysThem(t *testing.T) {
	inWorld(t, fleet.Options{}, func(w *world) {
		s, c := w.joined("eu")
		create(t, s, pod("a", "old"))
		pods := w.resource(c, podsGVR)
		before := pods.Snapshot().Version()
		var all, later []string
		note := func(to *[]string) func(*fleet.Event) {
			return func(e *fleet.Event) { *to = append(*to, e.Type.String()+" "+string(e.Key)) }
		}
		one, err := pods.Subscribe(note(&all), nil)
		if err != nil {
			t.Fatal(err)
		}
		two, err := pods.Subscribe(note(&later), &fleet.HandlerOptions{FromNow: true, MaxBacklog: 10})
		if err != nil {
			t.Fatal(err)
		}
		v, err := s.Create(pod("a", "new"))
		if err != nil {
			t.Fatal(err)
		}
		if err := pods.WaitVersion(context.Background(), v); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := strings.Join(all, ", "); got != "Added a/old, Added a/new" || !one.HasSynced() {
			t.Errorf("the first handler received %s", got)
		}
		if got := strings.Join(later, ", "); got != "Added a/new" {
			t.Errorf("the second handler received %s", got)
		}
		since, err := pods.Since(before)
		if err != nil {
			t.Fatal(err)
		}
		var replayed []object.Key
		for e := range since {
			replayed = append(replayed, e.Key)
		}
		if !slices.Equal(replayed, []object.Key{"a/new"}) {
			t.Errorf("Since(%s) = %v", before, replayed)
		}
		two.Remove()
		create(t, s, pod("a", "last"))
		synctest.Wait()
		if len(later) != 1 || len(all) != 3 {
			t.Errorf("after the removal: %v and %v", all, later)
		}
	})
}

func TestClusterThatLeftIsReleasedAndCanJoinAgain(t *testing.T) {
	inWorld(t, fleet.Options{}, func(w *world) {
		s, cfg := w.server()
		create(t, s, pod("a", "one"))
		for range 2 {
			c := w.join("eu", cfg)
			w.untilState(c, fleet.Ready)
			pods := w.resource(c, podsGVR)
			changed := w.f.Changed()
			if err := w.f.Leave(context.Background(), "eu"); err != nil {
				t.Fatal(err)
			}
			<-changed
			<-pods.Done()
			if _, there := w.f.Cluster("eu"); there || len(c.Resources()) != 0 || len(c.Groups()) != 0 ||
				c.Health().State != fleet.Left {
				t.Errorf("it is still there: %+v", c.Health())
			}
			if pods.Snapshot().Len() != 0 || pods.Synced() {
				t.Error("the mirror of a cluster that has left is not empty")
			}
			if _, err := pods.Subscribe(func(*fleet.Event) {}, nil); err == nil {
				t.Error("a cluster that has left accepted a handler")
			}
			synctest.Wait()
			if n := s.OpenWatches(); n != 0 {
				t.Errorf("%d watches are open after the cluster has left", n)
			}
		}
		if err := w.f.Leave(context.Background(), "eu"); !errors.Is(err, fleet.ErrUnknown) {
			t.Errorf("leaving twice: %v", err)
		}
	})
}

func TestMemoryOfAClusterThatLeftIsFreed(t *testing.T) {
	inWorld(t, fleet.Options{}, func(w *world) {
		s, cfg := w.server()
		create(t, s, pod("a", "one"))
		cluster, pods := func() (weak.Pointer[fleet.Cluster], weak.Pointer[fleet.Snapshot]) {
			c := w.join("eu", cfg)
			w.untilState(c, fleet.Ready)
			snap := w.resource(c, podsGVR).Snapshot()
			return weak.Make(c), weak.Make(snap)
		}()
		if err := w.f.Leave(context.Background(), "eu"); err != nil {
			t.Fatal(err)
		}
		w.until("the cluster is collected", func() bool {
			runtime.GC()
			return cluster.Value() == nil && pods.Value() == nil
		})
	})
}

func TestJoinBeforeDuringAndAfterRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, logs: &logs{}}
		_, first := w.server()
		_, second := w.server()
		defer func() {
			for _, end := range w.ends {
				end()
			}
		}()
		f, err := fleet.New(fleet.Options{Logger: w.logs.logger(), Include: []string{"pods"}})
		if err != nil {
			t.Fatal(err)
		}
		w.f = f
		early := w.join("b", first)
		gone := w.join("gone", first)
		if err := f.Leave(context.Background(), "gone"); err != nil || gone.Health().State != fleet.Left {
			t.Errorf("leaving before the start: %v, %+v", err, gone.Health())
		}
		if h := early.Health(); h.State != fleet.Joining {
			t.Errorf("before the start: %+v", h)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- f.Run(ctx) }()
		w.untilState(early, fleet.Ready)
		late := w.join("a", second)
		w.untilState(late, fleet.Ready)
		if got := names(f.Clusters()); got != "a b" {
			t.Errorf("Clusters = %s", got)
		}
		if err := f.Run(ctx); err == nil {
			t.Error("a second Run returned no error")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		says(t, f.Join("c", first, fleet.Origin{}), "the fleet has ended")
		if early.Health().State != fleet.Left || len(early.Resources()) != 0 {
			t.Errorf("after the end: %+v", early.Health())
		}
	})
}

func TestJoinRefusesInvalidNamesAndConfigs(t *testing.T) {
	f, err := fleet.New(fleet.Options{Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	good := &rest.Config{Host: "https://192.0.2.1"}
	for _, name := range []string{"", "Eu", "a.b", "a_b", "-a", "a/b", strings.Repeat("a", 64)} {
		says(t, f.Join(name, good, fleet.Origin{}), "join cluster", "not a DNS label")
	}
	says(t, f.Join("a", nil, fleet.Origin{}), `"a"`, "the config is nil")
	says(t, f.Join("a", &rest.Config{}, fleet.Origin{}), "no Host")
	says(t,
		f.Join("a", &rest.Config{Host: "https://192.0.2.1",
			TLSClientConfig: rest.TLSClientConfig{CAData: []byte("no certificate")}}, fleet.Origin{}), "certificates")
	if err := f.Join("a", good, fleet.Origin{}); err != nil {
		t.Fatal(err)
	}
	if err := f.Join("a", good, fleet.Origin{}); !errors.Is(err, fleet.ErrExists) {
		t.Errorf("joining twice: %v", err)
	}
	if len(f.Clusters()) != 1 {
		t.Errorf("%d clusters", len(f.Clusters()))
	}
}

func TestLeaveReturnsWhenItsContextEnds(t *testing.T) {
	inWorld(t, fleet.Options{Include: []string{"pods"}}, func(w *world) {
		s, c := w.joined("eu")
		create(t, s, pod("a", "one"))
		pods := w.resource(c, podsGVR)
		free := make(chan struct{})
		if _, err := pods.Subscribe(func(*fleet.Event) { <-free }, nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began := time.Now()
		says(t, w.f.Leave(ctx, "eu"), "has left", "not all of it has ended")
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %v", took)
		}
		if len(w.f.Clusters()) != 0 {
			t.Error("the cluster is still a member")
		}
		close(free)
	})
}

func TestRequestsHaveAUserAgentAndNoRateLimit(t *testing.T) {
	inWorld(t, fleet.Options{Include: []string{"pods"}}, func(w *world) {
		_, cfg := w.server()
		var mu sync.Mutex
		agents := map[string]int{}
		cfg = wrapped(cfg, func(r *http.Request) *http.Response {
			mu.Lock()
			defer mu.Unlock()
			agents[r.UserAgent()]++
			return nil
		})
		cfg.QPS, cfg.Burst, cfg.UserAgent, cfg.Timeout = 0.001, 1, "other", time.Second
		w.untilState(w.join("eu", cfg), fleet.Ready)
		mu.Lock()
		defer mu.Unlock()
		if len(agents) != 1 || agents["mirador"] < 5 {
			t.Errorf("requests by agent: %v", agents)
		}
		if cfg.UserAgent != "other" || cfg.QPS != 0.001 {
			t.Error("the caller's config was changed")
		}
	})
}
