package clustermetrics_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/daemon/clustermetrics"
	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/informertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// member is a cluster in memory, which can be cut off.
type member struct {
	*informertest.Server
	cut atomic.Bool
}

func (m *member) wrap(next http.RoundTripper) http.RoundTripper { return &link{m, next} }

type link struct {
	to   *member
	next http.RoundTripper
}

func (l *link) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.to.cut.Load() {
		return nil, errors.New("there is no route to the cluster")
	}
	return l.next.RoundTrip(r)
}

func things(i int) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: fmt.Sprintf("things%d", i)}
}

// newMember returns a cluster with pods and with resources that have no objects.
func newMember(t *testing.T, pods, empty int) *member {
	t.Helper()
	m := &member{Server: informertest.NewServer(informertest.BookmarkEvery(time.Minute))}
	for i := range empty {
		check(t, m.Register(things(i), fmt.Sprintf("Thing%d", i), true))
	}
	for i := range pods {
		m.newPod(t, fmt.Sprintf("p%d", i))
	}
	return m
}

func (m *member) newPod(t *testing.T, name string) {
	t.Helper()
	_, err := m.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: name}})
	check(t, err)
}

// mirrored runs a fleet of these clusters until it is synced.
func mirrored(t *testing.T, clusters map[string]*member) *fleet.Fleet {
	t.Helper()
	fl, err := fleet.New(fleet.Options{Include: []string{"pods", "*.example.com"}, WithoutOpenAPI: true,
		Logger: slog.New(slog.DiscardHandler)})
	check(t, err)
	for name, m := range clusters {
		cfg, stop := informertest.Pipe(m.Server)
		t.Cleanup(stop)
		cfg = rest.CopyConfig(cfg)
		cfg.Wrap(m.wrap)
		check(t, fl.Join(name, cfg, fleet.Origin{Kind: fleet.FromFile}))
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- fl.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		check(t, <-ended)
	})
	time.Sleep(time.Minute)
	return fl
}

// scraped returns the values of a scrape by metric and labels.
func scraped(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	check(t, registry.Register(c))
	families, err := registry.Gather()
	check(t, err)
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			out[strings.TrimPrefix(f.GetName(), "mirador_")+"{"+strings.Join(labels, ",")+"}"] =
				m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return out
}

func expect(t *testing.T, shown, want map[string]float64) {
	t.Helper()
	for name, v := range want {
		if got, ok := shown[name]; !ok || got != v {
			t.Errorf("%s is %v (shown: %t), want %v", name, got, ok, v)
		}
	}
}

func TestAScrapeHasTheSumsOfEachClusterAndResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fl := mirrored(t, map[string]*member{"eu": newMember(t, 3, 2), "us": newMember(t, 1, 0)})
		shown := scraped(t, clustermetrics.NewCollector(fl))
		expect(t, shown, map[string]float64{
			"cluster_reachable{cluster=eu}": 1, "cluster_reachable{cluster=us}": 1,
			"cluster_resources{cluster=eu}": 3, "cluster_resources{cluster=us}": 1,
			"cluster_resources_synced{cluster=eu}": 3, "cluster_resources_restored{cluster=eu}": 0,
			"cluster_resources_failing{cluster=eu}": 0,
			"cluster_objects{cluster=eu}":           3, "cluster_objects{cluster=us}": 1,
			"cluster_events_total{cluster=eu}": 3,
			"resource_mirrors{resource=pods}":  2, "resource_mirrors{resource=things0.example.com}": 1,
			"resource_objects{resource=pods}": 4, "resource_objects{resource=things0.example.com}": 0,
		})
		all := shown["cluster_bytes{cluster=eu}"] + shown["cluster_bytes{cluster=us}"]
		if all == 0 || all != shown["resource_bytes{resource=pods}"] {
			t.Errorf("the clusters have %v bytes, the pods %v", all, shown["resource_bytes{resource=pods}"])
		}
	})
}

func TestMoreResourcesAreNotMoreSeriesOfAClusterAndNamesPassPromlint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		count := func(resources int) (n int) {
			c := clustermetrics.NewCollector(mirrored(t, map[string]*member{"eu": newMember(t, 1, resources)}))
			for name := range scraped(t, c) {
				if strings.HasPrefix(name, "cluster_") {
					n++
				}
			}
			problems, err := testutil.CollectAndLint(c)
			check(t, err)
			for _, p := range problems {
				t.Errorf("%s: %s", p.Metric, p.Text)
			}
			return n
		}
		if few, many := count(2), count(40); few != many || few < 10 {
			t.Errorf("a cluster has %d series with 3 resources and %d with 41", few, many)
		}
	})
}

func TestAClusterThatIsCutOffIsNotReachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eu := newMember(t, 1, 1)
		c := clustermetrics.NewCollector(mirrored(t, map[string]*member{"eu": eu, "us": newMember(t, 1, 0)}))
		eu.cut.Store(true)
		eu.CutWatches()
		time.Sleep(time.Minute)
		shown := scraped(t, c)
		expect(t, shown, map[string]float64{
			"cluster_reachable{cluster=eu}": 0, "cluster_reachable{cluster=us}": 1,
			"cluster_resources_failing{cluster=eu}": 2, "cluster_resources_failing{cluster=us}": 0,
			"cluster_objects{cluster=eu}": 1,
		})
		if shown["cluster_errors_total{cluster=eu,reason=unavailable}"] == 0 ||
			shown["cluster_last_event_age_seconds{cluster=eu}"] < 30 {
			t.Errorf("shown: %v", shown)
		}
	})
}

func TestCountersDoNotDecreaseWhenAResourceIsNotServedAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eu := newMember(t, 2, 2)
		c := clustermetrics.NewCollector(mirrored(t, map[string]*member{"eu": eu}))
		eu.newPod(t, "late")
		check(t, eu.Compact(eu.Version()))
		eu.newPod(t, "later")
		eu.CutWatches() // the watch of the idle things continues at a version that is gone
		time.Sleep(time.Minute)
		before := scraped(t, c)
		expect(t, before, map[string]float64{"cluster_events_total{cluster=eu}": 4})
		const expired = "cluster_errors_total{cluster=eu,reason=expired}"
		if before[expired] != 2 {
			t.Errorf("the watches that had to be relisted are not counted: %v", before)
		}
		check(t, eu.Unregister(things(0)))
		time.Sleep(10 * time.Minute) // the next discovery
		after := scraped(t, c)
		expect(t, after, map[string]float64{"cluster_resources{cluster=eu}": 2})
		for _, name := range []string{"cluster_events_total{cluster=eu}", "cluster_watches_total{cluster=eu}", expired} {
			if after[name] < before[name] {
				t.Errorf("%s was %v and is %v", name, before[name], after[name])
			}
		}
	})
}

func TestAClusterThatHasLeftHasNoSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fl := mirrored(t, map[string]*member{"eu": newMember(t, 1, 0), "us": newMember(t, 1, 0)})
		c := clustermetrics.NewCollector(fl)
		scraped(t, c)
		check(t, fl.Leave(t.Context(), "eu"))
		for name := range maps.Keys(scraped(t, c)) {
			if strings.Contains(name, "cluster=eu") {
				t.Errorf("%s is shown", name)
			}
		}
	})
}

// The next scrape may be far away.
func TestAClusterThatHasLeftIsNotKeptInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fl := mirrored(t, map[string]*member{"eu": newMember(t, 1, 0), "us": newMember(t, 1, 0)})
		c := clustermetrics.NewCollector(fl)
		scraped(t, c)
		pods := func() weak.Pointer[fleet.Resource] {
			eu, _ := fl.Cluster("eu")
			return weak.Make(eu.Resources()[0])
		}()
		check(t, fl.Leave(t.Context(), "eu"))
		for range 10 { // other parts may still let go of it
			runtime.GC()
			time.Sleep(time.Second)
		}
		if pods.Value() != nil {
			t.Error("the collector keeps a mirror of the cluster that has left")
		}
		runtime.KeepAlive(c)
	})
}
