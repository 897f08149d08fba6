package main

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/metrics"
)

// newMetrics returns the handler of the metrics of all informers and of the process.
func newMetrics(fl *fleet.Fleet) (http.Handler, error) {
	r := prometheus.NewRegistry()
	pipelines, err := metrics.NewCollector(func() (all []informer.Health) {
		for _, c := range fl.Clusters() {
			for _, res := range c.Resources() {
				all = append(all, res.Health())
			}
		}
		return all
	})
	if err != nil {
		return nil, err
	}
	for _, c := range []prometheus.Collector{collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), pipelines} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{}), nil
}
