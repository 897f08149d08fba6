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

// SetInformerMetricsProvider sets the provider of the metrics of queues and stores,
// here and in client-go. Only the first call has an effect.
func SetInformerMetricsProvider(p InformerMetricsProvider) {
	informerMetrics.once.Do(func() { informerMetrics.provider = p })
	clientgo.SetInformerMetricsProvider(p)
}

// storeGauge returns a gauge for a store's version, or nil without a provider.
func storeGauge(id InformerNameAndResource, p InformerMetricsProvider) GaugeMetric {
	if p == nil {
		p = informerMetrics.provider
	}
	if p == nil || !id.Reserved() {
		return nil
	}
	return p.NewStoreResourceVersionMetric(id)
}

// gaugeVersion sets a gauge to a version. A gauge is exact up to 2^53, so it shows the
// last 15 digits of a longer number, as in client-go.
func gaugeVersion(g GaugeMetric, rv string) {
	if g == nil {
		return
	}
	if n, err := strconv.ParseInt(rv[max(0, len(rv)-15):], 10, 64); err == nil {
		g.Set(float64(n))
	}
}

// queueMetrics are the depth of a queue and the processing time of its items. The zero
// value records nothing.
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

func (m queueMetrics) setDepth(n int) {
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
