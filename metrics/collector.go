package metrics

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mirador-k8s/mirador/informer"
)

// Informer is anything with a Health method, such as an *informer.Informer.
type Informer interface {
	Health() informer.Health
}

// Of returns a function for NewCollector that returns the health of these informers.
func Of(informers ...Informer) func() []informer.Health {
	return func() []informer.Health {
		out := make([]informer.Health, len(informers))
		for i, inf := range informers {
			out[i] = inf.Health()
		}
		return out
	}
}

// Collector is a prometheus.Collector of informers.
type Collector struct {
	health func() []informer.Health

	mu       sync.Mutex
	handlers map[string]map[string]*tally // by informer and handler label
}

var _ prometheus.Collector = (*Collector)(nil)

// NewCollector returns a collector. Each scrape calls health, which returns the informers to export: the Health
// method of a factory, or a function that Of returns.
func NewCollector(health func() []informer.Health) (*Collector, error) {
	if health == nil {
		return nil, errors.New("make a metrics collector: the health function is nil; give a factory's Health, or " +
			"metrics.Of(informers...)")
	}
	return &Collector{health: health, handlers: map[string]map[string]*tally{}}, nil
}

// Describe sends the descriptions of all metrics.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range descriptions {
		to <- d
	}
}

// Collect reads the health of every informer.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	now := time.Now()
	all := c.health()
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := map[string]bool{}
	for i := range all {
		h := &all[i]
		name := unique(seen, validText(h.Name))
		s := scrape{to: to, labels: []string{name, validText(h.Source.Cluster), validText(h.Source.Resource)}}
		s.informer(h, now)
		if c.handlers[name] == nil {
			c.handlers[name] = map[string]*tally{}
		}
		s.handlers(h, c.handlers[name])
	}
	maps.DeleteFunc(c.handlers, func(name string, _ map[string]*tally) bool { return !seen[name] })
}

// validText replaces invalid UTF-8, which label values must not contain.
func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// unique returns a name that is not in seen, with a number if necessary, and adds it.
func unique(seen map[string]bool, name string) string {
	free := name
	for n := 2; seen[free]; n++ {
		free = fmt.Sprintf("%s (%d)", name, n)
	}
	seen[free] = true
	return free
}

// scrape sends the metrics of one informer.
type scrape struct {
	to     chan<- prometheus.Metric
	labels []string
}

func (s scrape) send(d *prometheus.Desc, t prometheus.ValueType, v float64, more ...string) {
	s.to <- prometheus.MustNewConstMetric(d, t, v, slices.Concat(s.labels, more)...)
}

func (s scrape) gauge(d *prometheus.Desc, v float64, more ...string) {
	s.send(d, prometheus.GaugeValue, v, more...)
}

func (s scrape) counter(d *prometheus.Desc, v uint64, more ...string) {
	s.send(d, prometheus.CounterValue, float64(v), more...)
}

func (s scrape) informer(h *informer.Health, now time.Time) {
	r := &h.Reflector
	s.gauge(objects, float64(h.Objects))
	s.gauge(synced, oneIf(h.Synced))
	s.gauge(restored, oneIf(r.Restored))
	s.gauge(epoch, float64(h.Epoch))
	for _, state := range states {
		s.gauge(inState, oneIf(state == r.State.String()), state)
	}
	if !r.LastEvent.IsZero() {
		s.gauge(lastEventAge, h.Reflector.Age(now).Seconds())
	}
	s.gauge(failuresInARow, float64(r.Failures))
	s.counter(events, h.Events)
	s.counter(stale, h.Stale)
	s.counter(undecodable, r.Undecodable)
	s.gauge(queueDeltas, float64(h.QueueDeltas))
	s.gauge(queueBytes, float64(h.QueueBytes))
	s.counter(queueCoalesced, h.QueueCoalesced)
	s.counter(lists, r.Lists)
	s.counter(watches, r.Watches)
	s.counter(retries, r.Retries)
	for reason, n := range r.Errors {
		s.counter(failures, n, reason.String())
	}
	for doing, n := range h.Problems {
		s.counter(problems, n, doing)
	}
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
