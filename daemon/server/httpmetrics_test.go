package server_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/mirador-k8s/mirador/daemon/server"
)

// metricsOf returns the metrics of a server as lines: the name, the values of the labels, and the value.
func metricsOf(t *testing.T, s *server.Server) (lines []string) {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(s); err != nil {
		t.Fatal(err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			lines = append(lines, fmt.Sprintf("%s{%s} %v", strings.TrimPrefix(f.GetName(), "mirador_"),
				strings.Join(labels, ","), valueOf(m)))
		}
	}
	return lines
}

func valueOf(m *dto.Metric) float64 {
	switch {
	case m.Counter != nil:
		return m.Counter.GetValue()
	case m.Gauge != nil:
		return m.Gauge.GetValue()
	}
	return float64(m.Histogram.GetSampleCount())
}

func TestRequestsAreCountedByVerbResourceCodeAndReason(t *testing.T) {
	d, _, _ := newDaemonWithRightsAnd(t, server.Options{Access: server.Access{Token: secretToken}})
	for _, c := range []struct {
		method, user, path string
		line               string // a counter, without the value
	}{
		{"GET", "ann", "/clusters/eu/api/v1/namespaces/web/pods/a", "code=200,reason=,resource=pods,verb=get"},
		{"GET", "bob", "/clusters/us/api/v1/pods", "code=200,reason=,resource=pods,verb=list"},
		{"GET", "ann", "/clusters/eu/api/v1/namespaces/shop/pods/c", "code=403,reason=forbidden,resource=pods,verb=get"},
		{"GET", "carl", "/fleet/api/v1/pods", "code=403,reason=forbidden,resource=pods,verb=list"},
		{"GET", "", "/fleet/api/v1/pods", "code=401,reason=unauthenticated,resource=other,verb=list"},
		{"GET", "ann", "/clusters/eu/apis/evil.example.com/v1/hostile/x",
			"code=403,reason=forbidden,resource=other,verb=get"},
		{"GET", "ann", "/clusters/nowhere/api/v1/secrets/x",
			"code=403,reason=forbidden,resource=other,verb=get"},
		{"HOSTILE", "ann", "/clusters/eu/api/v1/namespaces/web/pods/a", "code=405,reason=,resource=pods,verb=other"},
		{"POST", "ann", "/clusters", "code=415,reason=,resource=clusters.mirador.dev,verb=create"},
		{"GET", "ann", "/" + strings.Repeat("x", 20_000), "code=413,reason=too-large,resource=,verb=get"},
		{"GET", "ann", "/hostile/path", "code=404,reason=,resource=,verb=get"},
	} {
		before := metricsOf(t, d.Server)
		resp := d.send(t, "test", c.method, c.user, c.path, nil)
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if want := "http_requests_total{" + c.line + "} "; !slices.ContainsFunc(changed(t, d, before),
			func(line string) bool { return strings.HasPrefix(line, want) }) {
			t.Errorf("%s %s as %q: want %s, got %q", c.method, c.path[:min(50, len(c.path))], c.user, c.line,
				changed(t, d, before))
		}
	}
	for _, line := range metricsOf(t, d.Server) {
		for _, word := range []string{"hostile", "evil", "HOSTILE", "ann", "eu", "web", "secrets", "xxx"} {
			if labels := line[strings.Index(line, "{"):]; strings.Contains(labels, word) {
				t.Errorf("%s has %s", line, word)
			}
		}
	}
}

// changed returns the counters that differ from before. The end of a request may come after its answer.
func changed(t *testing.T, d memoryDaemon, before []string) (out []string) {
	t.Helper()
	until(t, func() string {
		out = slices.DeleteFunc(metricsOf(t, d.Server), func(line string) bool { return slices.Contains(before, line) })
		if !slices.ContainsFunc(out, func(line string) bool { return strings.HasPrefix(line, "http_requests_total") }) {
			return "no counter has changed"
		}
		return ""
	})
	return out
}

func TestOpenWatchesAreAGaugeAndHaveNoLatency(t *testing.T) {
	d, _, _ := newDaemonWithRightsAnd(t, server.Options{Access: server.Access{Token: secretToken}})
	resp := d.send(t, "test", http.MethodGet, "ann", "/fleet/api/v1/pods?watch=true", nil)
	if _, err := resp.Body.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	has := func(want string) func() string {
		return func() string {
			if got := metricsOf(t, d.Server); !slices.Contains(got, want) {
				return fmt.Sprintf("want %s, got %q", want, got)
			}
			return ""
		}
	}
	until(t, has("http_watches{resource=pods} 1"))
	until(t, has("http_requests_in_flight{} 0"))
	resp.Body.Close()
	until(t, has("http_watches{resource=pods} 0"))
	until(t, has("http_requests_total{code=200,reason=,resource=pods,verb=watch} 1"))
	for _, line := range metricsOf(t, d.Server) {
		if strings.HasPrefix(line, "http_request_duration_seconds") && strings.Contains(line, "watch") {
			t.Error(line)
		}
	}
	until(t, has("http_requests_in_flight{} 0"))
}

func TestRefusalsOfTheGuardHaveTheirReason(t *testing.T) {
	d, _, _ := newDaemonWithRightsAnd(t, server.Options{Access: server.Access{Token: secretToken, Watches: 1}})
	watch := d.send(t, "test", http.MethodGet, "ann", "/fleet/api/v1/pods?watch=true", nil)
	defer watch.Body.Close()
	d.send(t, "test", http.MethodGet, "bob", "/fleet/api/v1/pods?watch=true", nil).Body.Close()
	d.send(t, "test", http.MethodPost, "ann", "/clusters", map[string]string{"Origin": "http://evil.example.com"}).
		Body.Close()
	until(t, func() string {
		got := metricsOf(t, d.Server)
		for _, want := range []string{"code=429,reason=watches,resource=pods,verb=watch",
			"code=403,reason=origin,resource=clusters.mirador.dev,verb=create"} {
			if !slices.Contains(got, "http_requests_total{"+want+"} 1") {
				return fmt.Sprintf("want %s, got %q", want, got)
			}
		}
		return ""
	})
}
