package metrics

import (
	"maps"
	"slices"
	"strings"

	"github.com/mirador-k8s/mirador/informer"
)

const (
	// namedHandlers is how many handlers of an informer have series with their own name.
	namedHandlers = 50
	unnamed       = "unnamed"
	other         = "other"
)

// counts are the counters of a handler.
type counts struct{ delivered, coalesced, panics uint64 }

func (c *counts) add(o counts) {
	c.delivered += o.delivered
	c.coalesced += o.coalesced
	c.panics += o.panics
}

func (c counts) before(o counts) bool {
	return c.delivered < o.delivered || c.coalesced < o.coalesced || c.panics < o.panics
}

// tally keeps the counters of one label from decreasing: it adds the counts of handlers that were removed or that
// started again at zero.
type tally struct {
	past counts
	last map[string]counts // by the handler's own name
}

// update stores the current counts of the handlers and returns the sum.
func (t *tally) update(now map[string]counts) counts {
	for name, last := range t.last {
		if is, here := now[name]; !here || is.before(last) {
			t.past.add(last)
		}
	}
	t.last = now
	sum := t.past
	for _, c := range now {
		sum.add(c)
	}
	return sum
}

// group is the handlers with one label.
type group struct {
	backlog         int
	oldest, running float64
	unsynced        bool
	counts          map[string]counts
}

func (s scrape) handlers(h *informer.Health, tallies map[string]*tally) {
	groups := map[string]*group{}
	byName := slices.SortedFunc(slices.Values(h.Handlers),
		func(a, b informer.HandlerHealth) int { return strings.Compare(a.Name, b.Name) })
	for _, one := range byName {
		label := handlerLabel(h.Name, one.Name)
		if groups[label] == nil && len(groups) >= namedHandlers && label != unnamed {
			label = other
		}
		g := groups[label]
		if g == nil {
			g = &group{counts: map[string]counts{}}
			groups[label] = g
		}
		g.backlog += one.Backlog
		g.oldest = max(g.oldest, one.OldestWaiting.Seconds())
		g.running = max(g.running, one.Running.Seconds())
		g.unsynced = g.unsynced || !one.Synced
		c := g.counts[one.Name] // two handlers may have the same name
		c.add(counts{one.Delivered, one.Coalesced, one.Panics})
		g.counts[one.Name] = c
	}
	maps.DeleteFunc(tallies, func(label string, _ *tally) bool { return groups[label] == nil })
	s.gauge(handlers, float64(len(h.Handlers)))
	for label, g := range groups {
		if tallies[label] == nil {
			tallies[label] = &tally{}
		}
		sum := tallies[label].update(g.counts)
		s.gauge(handlerBacklog, float64(g.backlog), label)
		s.gauge(handlerOldest, g.oldest, label)
		s.gauge(handlerRunning, g.running, label)
		s.gauge(handlerSynced, oneIf(!g.unsynced), label)
		s.counter(handlerDelivered, sum.delivered, label)
		s.counter(handlerCoalesced, sum.coalesced, label)
		s.counter(handlerPanics, sum.panics, label)
	}
}

// handlerLabel returns the label of a handler: its name, or "unnamed" for a name that the informer made from a number.
// Such numbers grow with each new handler, and so would the number of series.
func handlerLabel(informerName, name string) string {
	if n, ok := strings.CutPrefix(name, informerName+"#"); ok && n != "" && strings.Trim(n, "0123456789") == "" {
		return unnamed
	}
	return validText(name)
}
