package main

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mirador-k8s/mirador/daemon/audit"
	"github.com/mirador-k8s/mirador/daemon/clustermetrics"
	"github.com/mirador-k8s/mirador/daemon/disk"
	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server"
	"github.com/mirador-k8s/mirador/informertest"
	"github.com/mirador-k8s/mirador/metrics"
)

// recorder records the names of all metrics that are registered, whether or not they have a value yet.
type recorder struct{ names []string }

var describedName = regexp.MustCompile(`fqName: "([^"]+)"`)

func (r *recorder) Register(c prometheus.Collector) error {
	all := make(chan *prometheus.Desc)
	go func() { defer close(all); c.Describe(all) }()
	for d := range all {
		r.names = append(r.names, describedName.FindStringSubmatch(d.String())[1])
	}
	return nil
}

func (r *recorder) MustRegister(...prometheus.Collector) { panic("not used") }

func (r *recorder) Unregister(prometheus.Collector) bool { panic("not used") }

// everyMetric returns the names of all metrics of a daemon that has a data folder and an audit log.
func everyMetric(t *testing.T) []string {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	data, err := disk.Open(t.TempDir(), disk.Options{Logger: log})
	check(t, err)
	defer data.Close()
	fl, err := fleet.New(fleet.Options{Disk: data, Logger: log})
	check(t, err)
	srv, err := server.New(fl, server.Options{Authorizer: &heldLists{}, Logger: log})
	check(t, err)
	events, err := audit.Open(audit.Options{Path: "-", Logger: log})
	check(t, err)
	var r recorder
	check(t, registerMetrics(&r, fl, srv, events))
	return r.names
}

func readText(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	check(t, err)
	return string(b)
}

var (
	metricName = regexp.MustCompile(`\b(?:mirador|process|go)_[a-z0-9_]+\b`)
	firstCell  = regexp.MustCompile("(?m)^\\| (`[^|]*) \\|")
	alertName  = regexp.MustCompile(`(?m)^ +- alert: (\w+)$`)
)

// firstCells returns the words in the first cells of the table below a heading.
func firstCells(t *testing.T, page, heading string) (words []string) {
	t.Helper()
	_, below, ok := strings.Cut(page, "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("docs/operate.md has no heading %q", heading)
	}
	below, _, _ = strings.Cut(below, "\n## ")
	for _, m := range firstCell.FindAllStringSubmatch(below, -1) {
		for word := range strings.SplitSeq(m[1], ",") {
			words = append(words, strings.Trim(word, " `"))
		}
	}
	slices.Sort(words)
	return words
}

// metricsOfOneMirror returns the names of the metrics that /metrics has of a mirror if a request names it.
func metricsOfOneMirror(t *testing.T) []string {
	t.Helper()
	c, err := metrics.NewCollector(metrics.Of())
	check(t, err)
	var r recorder
	check(t, r.Register(c))
	return r.names
}

func TestThePageHasEveryMetric(t *testing.T) {
	var want []string
	for _, name := range append(everyMetric(t), metricsOfOneMirror(t)...) {
		if strings.HasPrefix(name, "mirador_") {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	got := firstCells(t, readText(t, "../../docs/operate.md"), "Metrics")
	for _, name := range want {
		if !slices.Contains(got, name) {
			t.Errorf("docs/operate.md does not have the metric %s", name)
		}
	}
	for _, name := range got {
		if !slices.Contains(want, name) {
			t.Errorf("docs/operate.md has %s, which is no metric", name)
		}
	}
}

func TestThePageHasEveryAlert(t *testing.T) {
	var want []string
	for _, m := range alertName.FindAllStringSubmatch(readText(t, "../../deploy/chart/files/alerts.yaml"), -1) {
		want = append(want, m[1])
	}
	slices.Sort(want)
	if len(want) < 10 {
		t.Fatalf("alerts.yaml has only the alerts %q; the test reads it wrongly", want)
	}
	if got := firstCells(t, readText(t, "../../docs/operate.md"), "Alerts"); !slices.Equal(got, want) {
		t.Errorf("docs/operate.md has the alerts\n%q, want\n%q", got, want)
	}
}

func TestAlertsAndDashboardUseMetricsThatExist(t *testing.T) {
	all := everyMetric(t)
	for _, file := range []string{"alerts.yaml", "dashboard.json"} {
		names := metricName.FindAllString(readText(t, "../../deploy/chart/files/"+file), -1)
		if len(names) < 10 {
			t.Errorf("%s has only the metrics %q; the test reads it wrongly", file, names)
		}
		for _, name := range names {
			if !slices.Contains(all, strings.TrimSuffix(name, "_bucket")) {
				t.Errorf("%s has %s, which is no metric", file, name)
			}
		}
	}
}

func TestMetricsOfSingleMirrorsAreShownOnRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fl, err := fleet.New(fleet.Options{Include: []string{"pods", "deployments"}, WithoutOpenAPI: true,
			Logger: slog.New(slog.DiscardHandler)})
		check(t, err)
		for _, name := range []string{"eu", "us"} {
			cfg, stop := informertest.Pipe(informertest.NewServer(informertest.BookmarkEvery(time.Minute)))
			t.Cleanup(stop)
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
		registry := prometheus.NewRegistry()
		check(t, registry.Register(clustermetrics.NewCollector(fl)))
		handler := metricsHandler(registry, fl)
		const cluster, mirror = "mirador_cluster_objects{", "mirador_informer_objects{"
		for _, c := range []struct {
			query             string
			code              int
			clusters, mirrors int
		}{
			{"", http.StatusOK, 2, 0},
			{"?cluster=eu", http.StatusOK, 0, 2},
			{"?resource=pods", http.StatusOK, 0, 2},
			{"?cluster=us&resource=deployments.apps", http.StatusOK, 0, 1},
			{"?cluster=us&resource=deployments", http.StatusNotFound, 0, 0},
			{"?cluster=asia", http.StatusNotFound, 0, 0},
		} {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics"+c.query, nil))
			text := w.Body.String()
			if w.Code != c.code || strings.Count(text, "\n"+cluster) != c.clusters ||
				strings.Count(text, "\n"+mirror) != c.mirrors {
				t.Errorf("/metrics%s: %d\n%s", c.query, w.Code, text)
			}
			if c.code == http.StatusNotFound && !strings.Contains(text, "resource=deployments.apps") {
				t.Errorf("/metrics%s does not say how to ask: %s", c.query, text)
			}
		}
	})
}
