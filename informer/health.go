package informer

import (
	"maps"
	"time"

	"github.com/mirador-k8s/mirador/fanout"
	"github.com/mirador-k8s/mirador/reflector"
	"github.com/mirador-k8s/mirador/source"
	"github.com/mirador-k8s/mirador/store"
)

// Health is what can be said of an informer at one moment.
type Health struct {
	// Name is the informer's, Source says what it mirrors.
	Name   string
	Source source.Description
	// Reflector tells of the connection: state, version, age of the last word, the
	// last failure.
	Reflector reflector.Health
	// Synced says whether the initial state is in the store.
	Synced bool
	// Objects is how many are stored.
	Objects int
	// Layout says how the objects are kept, and how many could not be kept so.
	Layout store.LayoutStats
	// Events counts the changes told to handlers, Stale the changes that were old
	// news and dropped, Epoch how often the source's history was set back.
	Events, Stale, Epoch uint64
	// QueueDeltas and QueueBytes wait between reflector and store; QueueCoalesced
	// counts the changes that a later one of the same object replaced there.
	QueueDeltas, QueueBytes int
	QueueCoalesced          uint64
	// Problems counts what went wrong, by what was attempted.
	Problems map[string]uint64
	// Handlers tells of each handler, in the order in which they subscribed.
	Handlers []HandlerHealth
}

// HandlerHealth is what can be said of one handler.
type HandlerHealth struct {
	Name   string
	Synced bool
	fanout.Stats
}

// Age is how long ago the source last said anything.
func (h Health) Age(now time.Time) time.Duration { return h.Reflector.Age(now) }

// Health tells how the informer is doing. It may be called at any time.
func (i *Informer[T]) Health() Health {
	i.mu.Lock()
	refl, q, fan, synced := i.refl, i.queue, i.fan, i.synced
	i.mu.Unlock()
	h := Health{
		Name: i.opts.Name, Source: i.src.Describe(), Reflector: refl.Health(), Synced: isClosed(synced),
		Objects: i.reader.Len(), Layout: i.reader.Layout(), Events: i.events.Load(), Epoch: i.epoch.Load(),
		QueueCoalesced: q.coalesced(),
	}
	h.Stale = i.stale.Load() + h.Reflector.Stale
	h.QueueDeltas, h.QueueBytes = q.depth()
	i.countsMu.Lock()
	h.Problems = make(map[string]uint64, len(i.counts))
	maps.Copy(h.Problems, i.counts)
	i.countsMu.Unlock()
	for _, s := range fan.Subscriptions() {
		h.Handlers = append(h.Handlers, HandlerHealth{Name: s.Name(), Synced: s.HasSynced(), Stats: s.Stats()})
	}
	return h
}
