package main

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mirador-k8s/mirador/daemon/audit"
	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server"
	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/metrics"
)

// metricsHandler returns the handler of /metrics.
func metricsHandler(r *prometheus.Registry) http.Handler {
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}

// registerMetrics registers the metrics of all informers, of requests, of the audit log and of the process. events is
// nil if there is no audit log.
func registerMetrics(r *prometheus.Registry, fl *fleet.Fleet, srv *server.Server, events *audit.Log) error {
	pipelines, err := metrics.NewCollector(func() (all []informer.Health) {
		for _, c := range fl.Clusters() {
			for _, res := range c.Resources() {
				all = append(all, res.Health())
			}
		}
		return all
	})
	if err != nil {
		return err
	}
	all := []prometheus.Collector{collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), pipelines, srv}
	if events != nil {
		all = append(all, prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "mirador_audit_written_total",
			Help: "Events that were written to the audit log."}, func() float64 { return float64(events.Counts().Written) }),
			prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "mirador_audit_dropped_total",
				Help: "Events that are not in the audit log, because they could not be written."},
				func() float64 { return float64(events.Counts().Dropped) }))
	}
	for _, c := range all {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}
