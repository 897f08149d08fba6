package informer

import (
	"maps"

	"github.com/mirador-k8s/mirador/fanout"
	"github.com/mirador-k8s/mirador/reflector"
	"github.com/mirador-k8s/mirador/source"
	"github.com/mirador-k8s/mirador/store"
)

// Health is the condition of an informer at one moment.
type Health struct {
	// Name is the informer's name, and Source describes what it mirrors.
	Name   string
	Source source.Description
	// Reflector is the condition of the connection: state, version, time of the last event, last failure.
	Reflector reflector.Health
	// Synced says whether the store has the initial state.
	Synced bool
	// Objects is the number of stored objects.
	Objects int
	// Layout says how the objects are stored, and how many could not be stored in the chosen layout.
	Layout store.LayoutStats
	// Events counts the published events, Stale the changes that were dropped because they were not new, and Epoch how
	// often the source's history was reset.
	Events, Stale, Epoch uint64
	// QueueDeltas and QueueBytes are the number and size of the changes that wait between reflector and store.
	// QueueCoalesced counts the changes that were replaced there by a later one of the same object.
	QueueDeltas, QueueBytes int
	QueueCoalesced          uint64
	// Problems counts the problems, by Problem.Doing.
	Problems map[string]uint64
	// Handlers has the condition of each handler, in the order in which they subscribed.
	Handlers []HandlerHealth
}

// HandlerHealth is the condition of one handler.
type HandlerHealth struct {
	Name   string
	Synced bool
	fanout.Stats
}

// Health returns the condition of the informer. It may be called at any time.
func (i *Informer[T]) Health() Health {
	i.mu.Lock()
	refl, q, fan, synced := i.refl, i.queue, i.fan, i.synced
	i.mu.Unlock()
	h := Health{
		Name: i.opts.Name, Source: i.src.Describe(), Reflector: refl.Health(), Synced: isClosed(synced),
		Objects: i.reader.Len(), Layout: i.reader.Layout(), Events: i.events.Load(), Epoch: i.epoch.Load(),
	}
	h.Stale = i.stale.Load() + h.Reflector.Stale
	h.QueueDeltas, h.QueueBytes, h.QueueCoalesced = q.counts()
	i.countsMu.Lock()
	h.Problems = make(map[string]uint64, len(i.counts))
	maps.Copy(h.Problems, i.counts)
	i.countsMu.Unlock()
	for _, s := range fan.Subscriptions() {
		h.Handlers = append(h.Handlers, HandlerHealth{Name: s.Name(), Synced: s.HasSynced(), Stats: s.Stats()})
	}
	return h
}
