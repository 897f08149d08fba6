package clustermetrics

import (
	"maps"
	"weak"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/informer"
)

// counts are the counters of one mirror, or of all mirrors of a cluster.
type counts struct {
	events, watches, undecodable, coalesced, resets uint64
	failures, problems                              map[string]uint64 // nil if there were none
}

func countsOf(h *informer.Health) counts {
	r := &h.Reflector
	c := counts{events: h.Events, watches: r.Watches, undecodable: r.Undecodable, coalesced: h.QueueCoalesced,
		resets: h.Epoch}
	for reason, n := range r.Errors {
		addTo(&c.failures, reason.String(), n)
	}
	for doing, n := range h.Problems {
		addTo(&c.problems, doing, n)
	}
	return c
}

func addTo(m *map[string]uint64, key string, n uint64) {
	if *m == nil {
		*m = map[string]uint64{}
	}
	(*m)[key] += n
}

func (c *counts) add(o *counts) {
	c.events += o.events
	c.watches += o.watches
	c.undecodable += o.undecodable
	c.coalesced += o.coalesced
	c.resets += o.resets
	for reason, n := range o.failures {
		addTo(&c.failures, reason, n)
	}
	for doing, n := range o.problems {
		addTo(&c.problems, doing, n)
	}
}

// countsByMirror are the counts of the mirrors of a cluster. The next scrape may be far away, and a cluster may leave
// before it: the counts do not keep its mirrors in memory.
type countsByMirror map[weak.Pointer[fleet.Resource]]counts

// tally keeps the counters of a cluster from decreasing: it adds the counts of mirrors that have ended.
type tally struct {
	past counts
	last countsByMirror
}

// update stores the counts of the present mirrors and returns the sum.
func (t *tally) update(now countsByMirror) counts {
	for res, c := range t.last {
		if _, here := now[res]; !here {
			t.past.add(&c)
		}
	}
	t.last = now
	sum := t.past
	sum.failures, sum.problems = maps.Clone(t.past.failures), maps.Clone(t.past.problems)
	for _, c := range now {
		sum.add(&c)
	}
	return sum
}
