package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/daemon/disk"
	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/ratelimit"
	"github.com/mirador-k8s/mirador/dev/testpods"
	"github.com/mirador-k8s/mirador/informertest"
)

// BenchmarkPast reads the past of 100,000 pods, of which a fifth have changed since the moment.
func BenchmarkPast(b *testing.B) {
	const n, changed = 100_000, 20_000
	set := testpods.New(1, 1000)
	cluster := informertest.NewServer()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	_, err := cluster.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}})
	must(err)
	labeled := func(i int) *corev1.Pod {
		pod := set.Pod(i)
		pod.Labels["bench"] = fmt.Sprint(i % (n / 100))
		return pod
	}
	for i := range n {
		_, err := cluster.Create(labeled(i))
		must(err)
	}
	d, err := disk.Open(b.TempDir(), disk.Options{Logger: slog.New(slog.DiscardHandler)})
	must(err)
	b.Cleanup(func() { must(d.Close()) })
	s := NewInMemory(b, map[string]http.Handler{"eu": cluster}, fleet.Options{Include: []string{"pods", "namespaces"},
		WithoutOpenAPI: true, Disk: d}, Options{})
	s.guard.clients = ratelimit.NewTable(1<<40, 1<<40) // no limit
	s.Start()
	get := func(path string) (int, string) {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Host = "localhost"
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	await := func(path, text string) {
		b.Helper()
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for late := time.Now().Add(5 * time.Minute); ; <-tick.C {
			code, body := get(path)
			if code == http.StatusOK && strings.Contains(body, text) {
				return
			}
			if time.Now().After(late) {
				b.Fatal(path, code, body[:min(len(body), 500)])
			}
		}
	}
	const pods = "/clusters/eu/api/v1/pods?limit=500&labelSelector=bench%3D7"
	await(pods+"&at=-0s", `"PodList"`)
	moment := url.QueryEscape(momentText(time.Now()))
	var last *corev1.Pod
	for i := range changed {
		last = set.Changed(labeled(i*(n/changed)+7%(n/changed)), 1)
		last.Labels["changed"] = fmt.Sprint(i)
		last.ResourceVersion, last.UID = "", ""
		_, err := cluster.Update(last)
		must(err)
	}
	await(fmt.Sprintf("/clusters/eu/api/v1/pods?at=-0s&labelSelector=changed%%3D%d", changed-1), `"uid"`)
	one := fmt.Sprintf("/clusters/eu/api/v1/namespaces/%s/pods/%s", last.Namespace, last.Name)

	for _, c := range []struct{ name, path, text string }{
		{"ListByLabel", pods + "&at=" + moment, `"items":[{`},
		{"ListByLabelNow", pods, `"items":[{`},
		{"ListOfNamespace", "/clusters/eu/api/v1/namespaces/" + last.Namespace + "/pods?limit=500&at=" + moment,
			`"items":[{`},
		{"ListOfAll", "/clusters/eu/api/v1/pods?limit=500&at=" + moment, `"items":[{`},
		{"Get", one + "?at=" + moment, `"kind":"Pod"`},
		{"History", one + "/history", `"Updated"`},
		{"HistoryOfLabel", "/clusters/eu/api/v1/pods?history=true&labelSelector=bench%3D7&from=" + moment, `"Updated"`},
		{"HistoryOfAll", "/clusters/eu/api/v1/pods?history=true&limit=100&from=" + moment, `"Updated"`},
	} {
		b.Run(c.name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				begin := time.Now()
				code, body := get(c.path)
				took = append(took, time.Since(begin))
				if code != http.StatusOK || !strings.Contains(body, c.text) {
					b.Fatal(code, body[:min(len(body), 500)])
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		})
	}
}
