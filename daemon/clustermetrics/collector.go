package clustermetrics

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"weak"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/informer"
)

// Collector is a prometheus.Collector of the clusters of a fleet.
type Collector struct {
	fleet *fleet.Fleet

	mu      sync.Mutex
	tallies map[string]*tally // by the cluster's name
}

var _ prometheus.Collector = (*Collector)(nil)

// NewCollector returns a collector of the clusters of a fleet.
func NewCollector(f *fleet.Fleet) *Collector {
	return &Collector{fleet: f, tallies: map[string]*tally{}}
}

// Describe sends the descriptions of all metrics.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range descriptions {
		to <- d
	}
}

// Collect reads the health of every cluster.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	clusters, totals := c.fleet.Clusters(), resourceTotals{}
	seen := map[string]bool{}
	for _, cluster := range clusters {
		name := cluster.Name()
		seen[name] = true
		if c.tallies[name] == nil {
			c.tallies[name] = &tally{}
		}
		scrape{to, name}.cluster(cluster, c.tallies[name], totals)
	}
	maps.DeleteFunc(c.tallies, func(name string, _ *tally) bool { return !seen[name] })
	totals.send(to)
	taken, limit := c.fleet.Memory()
	to <- prometheus.MustNewConstMetric(fleetBytes, prometheus.GaugeValue, float64(taken))
	to <- prometheus.MustNewConstMetric(fleetMaxBytes, prometheus.GaugeValue, float64(limit))
}

// scrape sends the metrics of one cluster.
type scrape struct {
	to   chan<- prometheus.Metric
	name string
}

func (s scrape) gauge(d *prometheus.Desc, v float64) {
	s.to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, s.name)
}

func (s scrape) counter(d *prometheus.Desc, v uint64, labels ...string) {
	s.to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), append([]string{s.name}, labels...)...)
}

func (s scrape) cluster(c *fleet.Cluster, t *tally, totals resourceTotals) {
	sum := clusterSum{counts: countsByMirror{}}
	for _, res := range c.Resources() {
		h := res.Health()
		sum.add(&h)
		sum.counts[weak.Make(res)] = countsOf(&h)
		totals.add(res.GVR().GroupResource().String(), &h)
	}
	h := c.Health()
	s.gauge(reachable, oneIf(h.State != fleet.Unreachable))
	s.gauge(resources, float64(h.Resources))
	s.gauge(synced, float64(h.Synced))
	s.gauge(restored, float64(h.Restored))
	s.gauge(failing, float64(sum.failing))
	s.gauge(objects, float64(h.Objects))
	s.gauge(bytes, float64(sum.bytes))
	s.gauge(lastEventAge, h.LastEventAge.Seconds())
	s.gauge(queueBytes, float64(sum.queueBytes))
	s.gauge(handlerLag, sum.handlerLag)
	s.counters(t.update(sum.counts))
}

func (s scrape) counters(n counts) {
	s.counter(events, n.events)
	s.counter(watches, n.watches)
	s.counter(undecodable, n.undecodable)
	s.counter(coalesced, n.coalesced)
	s.counter(resets, n.resets)
	for reason, n := range n.failures {
		s.counter(failures, n, reason)
	}
	for doing, n := range n.problems {
		s.counter(problems, n, doing)
	}
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// clusterSum adds up what the health of a cluster does not have.
type clusterSum struct {
	failing, queueBytes int
	bytes               int64
	handlerLag          float64
	counts              countsByMirror
}

func (s *clusterSum) add(h *informer.Health) {
	// While a watch is open, the error is an older one.
	if h.Reflector.Err != nil && h.Reflector.State.String() != "streaming" {
		s.failing++
	}
	s.queueBytes += h.QueueBytes
	s.bytes += h.Layout.Bytes
	for _, one := range h.Handlers {
		s.handlerLag = max(s.handlerLag, one.OldestWaiting.Seconds())
	}
}

// namedResources is how many resources have series of their own. Each cluster may bring resources that no other one
// has.
const namedResources = 200

// otherResources is the label of the resources beyond namedResources. No resource can have this name.
const otherResources = "(other)"

// resourceTotals adds up each resource in all clusters, by its label: two resources of an odd cluster may have the same.
type resourceTotals map[string]*resourceTotal

type resourceTotal struct {
	mirrors, objects int
	bytes            int64
}

func (t resourceTotals) add(name string, h *informer.Health) {
	if t[name] == nil {
		t[name] = &resourceTotal{}
	}
	t[name].mirrors++
	t[name].objects += h.Objects
	t[name].bytes += h.Layout.Bytes
}

func (t resourceTotals) send(to chan<- prometheus.Metric) {
	names := slices.SortedFunc(maps.Keys(t), func(a, b string) int {
		return cmp.Or(cmp.Compare(t[b].bytes, t[a].bytes), cmp.Compare(a, b))
	})
	if len(names) > namedResources {
		var other resourceTotal
		for _, name := range names[namedResources:] {
			other.mirrors += t[name].mirrors
			other.objects += t[name].objects
			other.bytes += t[name].bytes
		}
		names = names[:namedResources]
		other.send(to, otherResources)
	}
	for _, name := range names {
		t[name].send(to, name)
	}
}

func (t *resourceTotal) send(to chan<- prometheus.Metric, name string) {
	gauge := func(d *prometheus.Desc, v float64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, name)
	}
	gauge(resourceMirrors, float64(t.mirrors))
	gauge(resourceObjects, float64(t.objects))
	gauge(resourceBytes, float64(t.bytes))
}
