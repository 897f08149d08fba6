package server

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxResourceLabels is how many resources have metrics of their own. Clusters come and go, and each may bring
// resources that no other cluster has; those beyond the limit are counted as "other".
const maxResourceLabels = 1000

// otherLabel is the label of everything that has no label of its own.
const otherLabel = "other"

// httpMetrics are the metrics of requests. No label has a value that a client can choose.
type httpMetrics struct {
	inFlight     prometheus.Gauge
	requests     *prometheus.CounterVec
	duration     *prometheus.HistogramVec
	watches      *prometheus.GaugeVec
	auditOmitted prometheus.Counter

	mu        sync.Mutex
	resources map[schema.GroupResource]string // the resources with a label of their own
}

func newHTTPMetrics() *httpMetrics {
	return &httpMetrics{
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: "mirador_http_requests_in_flight",
			Help: "Requests in progress, without open watches."}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "mirador_http_requests_total",
			Help: "Requests that have ended, by status code; the reason says why a request was refused."},
			[]string{"verb", "resource", "code", "reason"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "mirador_http_request_duration_seconds",
			Help:    "Time from the arrival of a request to the end of its answer, without watches.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}},
			[]string{"verb", "scope"}),
		watches: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "mirador_http_watches", Help: "Open watches."},
			[]string{"resource"}),
		auditOmitted: prometheus.NewCounter(prometheus.CounterOpts{Name: "mirador_audit_omitted_total",
			Help: "Refused and anonymous requests that are not in the audit log, because there were too many."}),
		resources: map[schema.GroupResource]string{},
	}
}

func (s *Server) collectors() []prometheus.Collector {
	m := s.metrics
	return []prometheus.Collector{m.inFlight, m.requests, m.duration, m.watches, m.auditOmitted,
		s.guard.failures.counter}
}

// Describe sends the descriptions of the metrics of requests. With Collect, it makes a Server a prometheus.Collector.
func (s *Server) Describe(to chan<- *prometheus.Desc) {
	for _, c := range s.collectors() {
		c.Describe(to)
	}
}

// Collect sends the metrics of requests.
func (s *Server) Collect(to chan<- prometheus.Metric) {
	for _, c := range s.collectors() {
		c.Collect(to)
	}
}

// watchBegan records that a request has become an open watch.
func (m *httpMetrics) watchBegan(rec *requestRecord) {
	m.inFlight.Dec()
	rec.resourceLabel = m.resourceLabel(rec)
	m.watches.WithLabelValues(rec.resourceLabel).Inc()
}

// ended records the end of a request.
func (m *httpMetrics) ended(rec *requestRecord) {
	verb := verbLabel(rec.want.Verb)
	if rec.watching {
		m.watches.WithLabelValues(rec.resourceLabel).Dec()
	} else {
		m.inFlight.Dec()
		rec.resourceLabel = m.resourceLabel(rec)
	}
	m.requests.WithLabelValues(verb, rec.resourceLabel, strconv.Itoa(rec.code), rec.refusal).Inc()
	if verb != "watch" {
		m.duration.WithLabelValues(verb, rec.scope).Observe(time.Since(rec.received).Seconds())
	}
}

// verbLabel returns the label of a verb.
func verbLabel(verb string) string {
	switch verb {
	case "get", "list", "watch", "create", "delete":
		return verb
	case "head":
		return "get"
	case "post":
		return "create"
	}
	return otherLabel
}

// resourceLabel returns the label of the resource of a request: "" if the request is not for a resource, and "other"
// if it has no valid credentials or the resource is not served here.
func (m *httpMetrics) resourceLabel(rec *requestRecord) string {
	if !rec.want.ResourceRequest {
		return ""
	}
	of := schema.GroupResource{Group: rec.want.APIGroup, Resource: rec.want.Resource}
	if rec.user == nil || !rec.server.serves(rec, of.WithVersion(rec.want.APIVersion)) {
		return otherLabel
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	label, ok := m.resources[of]
	if !ok {
		if len(m.resources) >= maxResourceLabels {
			return otherLabel
		}
		label = of.String()
		m.resources[of] = label
	}
	return label
}

// serves reports whether a resource is mirrored, or one of the server's own.
func (s *Server) serves(rec *requestRecord, gvr schema.GroupVersionResource) bool {
	if gvr.GroupResource() == clusterResource || slices.ContainsFunc(reviewKinds, func(r metav1.APIResource) bool {
		return r.Group == gvr.Group && r.Version == gvr.Version && r.Name == gvr.Resource
	}) {
		return true
	}
	if rec.cluster != "" {
		c, ok := s.fleet.Cluster(rec.cluster)
		if ok {
			_, ok = c.Resource(gvr)
		}
		return ok
	}
	for _, c := range s.fleet.Clusters() {
		if _, ok := c.Resource(gvr); ok {
			return true
		}
	}
	return false
}
