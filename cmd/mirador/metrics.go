package main

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mirador-k8s/mirador/daemon/audit"
	"github.com/mirador-k8s/mirador/daemon/clustermetrics"
	"github.com/mirador-k8s/mirador/daemon/disk"
	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server"
	"github.com/mirador-k8s/mirador/metrics"
)

// metricsHandler returns the handler of /metrics: the metrics of the daemon, or those of single mirrors if the request
// names a cluster, a resource, or both.
func metricsHandler(r *prometheus.Registry, fl *fleet.Fleet) http.Handler {
	daemon := promhttp.HandlerFor(r, promhttp.HandlerOpts{})
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		query := req.URL.Query()
		cluster, resource := query.Get("cluster"), query.Get("resource")
		if cluster == "" && resource == "" {
			daemon.ServeHTTP(w, req)
			return
		}
		chosen := mirrorsOf(fl, cluster, resource)
		if len(chosen) == 0 {
			http.Error(w, "no mirror is of this cluster and resource; write them as in "+
				"cluster=eu&resource=deployments.apps, and see mirador status --all", http.StatusNotFound)
			return
		}
		pipelines, err := metrics.NewCollector(metrics.Of(chosen...))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		single := prometheus.NewRegistry()
		single.MustRegister(pipelines)
		promhttp.HandlerFor(single, promhttp.HandlerOpts{}).ServeHTTP(w, req)
	})
}

// mirrorsOf returns the mirrors of a cluster and of a resource, such as pods or deployments.apps. An empty name is
// every cluster or resource.
func mirrorsOf(fl *fleet.Fleet, cluster, resource string) (chosen []metrics.Informer) {
	for _, c := range fl.Clusters() {
		if cluster != "" && cluster != c.Name() {
			continue
		}
		for _, r := range c.Resources() {
			if resource == "" || resource == r.GVR().GroupResource().String() {
				chosen = append(chosen, r)
			}
		}
	}
	return chosen
}

// registerMetrics registers the metrics of clusters, of requests, of the audit log and of the process. events is nil if
// there is no audit log.
func registerMetrics(r prometheus.Registerer, fl *fleet.Fleet, srv *server.Server, events *audit.Log) error {
	all := []prometheus.Collector{collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), buildMetric(),
		clustermetrics.NewCollector(fl), srv}
	if _, ok := fl.DiskHealth(); ok {
		all = append(all, diskMetrics(fl)...)
	}
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

// buildMetric returns the metric that says which program runs.
func buildMetric() prometheus.Collector {
	b := thisBuild()
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "mirador_build_info",
		Help:        "1; the labels have the version of the daemon.",
		ConstLabels: prometheus.Labels{"version": b.Version, "commit": b.Commit, "go": b.Go}}, func() float64 { return 1 })
}

// diskMetrics returns the metrics of the data folder.
func diskMetrics(fl *fleet.Fleet) []prometheus.Collector {
	gauge := func(name, help string, value func(h disk.Health) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "mirador_disk_" + name, Help: help}, func() float64 {
			h, _ := fl.DiskHealth()
			return value(h)
		})
	}
	truth := func(is bool) float64 {
		if is {
			return 1
		}
		return 0
	}
	return []prometheus.Collector{
		gauge("bytes", "Size of the data folder.", func(h disk.Health) float64 { return float64(h.Bytes) }),
		gauge("max_bytes", "What the data folder may take.", func(h disk.Health) float64 { return float64(h.MaxBytes) }),
		gauge("failed", "1 while nothing can be written to the data folder, else 0.",
			func(h disk.Health) float64 { return truth(h.Err != nil) }),
		gauge("history_paused", "1 while no history is written because there is no room, else 0.",
			func(h disk.Health) float64 { return truth(h.Paused) }),
		gauge("last_commit_timestamp_seconds", "When changes were last written to the data folder, in Unix time.",
			func(h disk.Health) float64 {
				if h.Committed.IsZero() {
					return 0
				}
				return float64(h.Committed.UnixMilli()) / 1000
			}),
	}
}
