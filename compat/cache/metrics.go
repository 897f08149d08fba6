package cache

import (
	"strconv"
	"sync"
	"time"

	clientgo "k8s.io/client-go/tools/cache"
)

var informerMetrics struct {
	once     sync.Once
	provider InformerMetricsProvider
}

// SetInformerMetricsProvider sets who makes the metrics of queues and stores from
// now on. The first call counts, here and for client-go's own.
func SetInformerMetricsProvider(p InformerMetricsProvider) {
	informerMetrics.once.Do(func() { informerMetrics.provider = p })
	clientgo.SetInformerMetricsProvider(p)
}

// storeGauge makes the gauge of a store's version, or nil where nobody wants one.
func storeGauge(id InformerNameAndResource, p InformerMetricsProvider) GaugeMetric {
	if p == nil {
		p = informerMetrics.provider
	}
	if p == nil || !id.Reserved() {
		return nil
	}
	return p.NewStoreResourceVersionMetric(id)
}

// gaugeVersion shows a version. A gauge is exact up to 2^53, so of a longer number
// the last 15 digits count, as in client-go.
func gaugeVersion(g GaugeMetric, rv string) {
	if g == nil {
		return
	}
	if n, err := strconv.ParseInt(rv[max(0, len(rv)-15):], 10, 64); err == nil {
		g.Set(float64(n))
	}
}

// queueMetrics are the depth of a queue and the time that processing takes. The
// zero value measures nothing.
type queueMetrics struct {
	depth   GaugeMetric
	latency HistogramMetric
}

func newQueueMetrics(id InformerNameAndResource, p InformerMetricsProvider) queueMetrics {
	if p == nil {
		p = informerMetrics.provider
	}
	if p == nil || !id.Reserved() {
		return queueMetrics{}
	}
	return queueMetrics{p.NewQueuedItemMetric(id), p.NewProcessingLatencyMetric(id)}
}

func (m queueMetrics) waiting(n int) {
	if m.depth != nil {
		m.depth.Set(float64(n))
	}
}

func (m queueMetrics) timed(process func() error) error {
	if m.latency == nil {
		return process()
	}
	start := time.Now()
	err := process()
	m.latency.Observe(time.Since(start).Seconds())
	return err
}
