package server

import (
	"iter"
	"sync"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/object"
)

// clusterWatchHub is the watchHub of one resource of one cluster. It exists while it has a watch.
//
// Every watch could also follow the store's log by itself, without a queue. But then each change would wake every
// watch, also those of other namespaces.
type clusterWatchHub struct {
	at   place
	hubs *clusterWatchHubs
	sub  fleet.Subscription

	mu    sync.Mutex
	epoch uint64
	last  object.Version // of the newest change
	feeds feeds
	ended bool
}

func newClusterWatchHub(at place, hubs *clusterWatchHubs) (*clusterWatchHub, error) {
	h := &clusterWatchHub{at: at, hubs: hubs, epoch: at.res.Health().Epoch, feeds: feeds{}}
	var err error
	h.sub, err = at.res.Subscribe(func(e *fleet.Event) { h.handle(at.cluster, e) }, &fleet.HandlerOptions{FromNow: true})
	return h, err
}

// handle receives the events of the resource.
func (h *clusterWatchHub) handle(cluster string, e *fleet.Event) {
	if e.Type == object.Resynced || e.Unchanged {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.epoch != e.Epoch:
		h.feeds.end(errHistoryReset)
	case h.last != "" && e.Version.Before(h.last):
		// A watch that continues from the newer version would miss this change.
		h.feeds.end(errMerged)
	case e.Missed || e.New != nil && e.New.Version != e.Version:
		// The mirror has relisted, and found a change that it did not see happen. All changes between the two lists have
		// the version of the second one, and objects that have changed have their own. A watch that continues from one of
		// these versions after a part of the changes would miss the others.
		h.feeds.end(errRelisted)
	}
	h.epoch, h.last = e.Epoch, e.Version
	h.feeds.push(clusterChange(cluster, e.Key, e.Old, e.New, e.Version))
}

// clusterChange returns a change with the versions of its cluster.
func clusterChange(cluster string, key object.Key, old, now *fleet.Entry, at object.Version) *change {
	c := &change{cluster: cluster, key: key, old: old, now: now, version: string(at), order: at}
	if now != nil {
		c.version = string(now.Version)
	}
	return c
}

// join adds a watch, which receives every later change.
func (h *clusterWatchHub) join(of watchScope) *feed {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.feeds.add(of)
	if h.ended {
		f.end(errUnserved)
	}
	return f
}

// since returns the changes after a version, from the log of the store.
func (h *clusterWatchHub) since(from object.Version) (iter.Seq[*change], error) {
	log, err := h.at.res.Since(from)
	if err != nil {
		return nil, err
	}
	return func(yield func(*change) bool) {
		for l := range log {
			if !yield(clusterChange(h.at.cluster, l.Key, l.Old, l.New, l.Version)) {
				return
			}
		}
	}, nil
}

// reached implements watchHub.
func (h *clusterWatchHub) reached(f *feed, sent object.Version) (string, bool) {
	h.mu.Lock()
	f.mu.Lock()
	if len(f.waiting) == 0 && f.err == nil && sent.Before(h.last) {
		sent = h.last
	}
	f.mu.Unlock()
	h.mu.Unlock()
	return reached(h.at.res, sent)
}

// reached returns the version up to which a watch has everything that the mirror has, given a version up to which it
// was sent changes.
func reached(res *fleet.Resource, sent object.Version) (string, bool) {
	v := res.Snapshot().Version()
	if sent == "" || v == "" {
		return "", false
	}
	if !sent.Before(v) {
		return string(v), true // after coalesced changes, the mirror's version counts
	}
	waiting, err := res.Since(sent)
	if err != nil {
		return "", false
	}
	for range waiting {
		return string(sent), true // a change is on its way
	}
	return string(v), true
}

// done implements watchHub.
func (h *clusterWatchHub) done() <-chan struct{} { return h.at.res.Done() }

// leave implements watchHub. The hub ends with its last watch.
func (h *clusterWatchHub) leave(f *feed) {
	h.hubs.mu.Lock()
	defer h.hubs.mu.Unlock()
	if h.drop(f) {
		delete(h.hubs.all, h.at.res)
		h.close(errUnserved)
	}
}

// drop removes a watch and reports whether it was the last one.
func (h *clusterWatchHub) drop(f *feed) (last bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.feeds.remove(f)
	return len(h.feeds) == 0
}

// close ends the hub and its watches.
func (h *clusterWatchHub) close(err error) {
	h.sub.Remove()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	h.feeds.end(err)
}

// clusterWatchHubs has the hubs of resources that are watched.
type clusterWatchHubs struct {
	mu  sync.Mutex
	all map[*fleet.Resource]*clusterWatchHub
}

// join adds a watch to the hub of a resource, and makes the hub if there is none.
func (hs *clusterWatchHubs) join(at place, of watchScope) (*clusterWatchHub, *feed, error) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h := hs.all[at.res]
	if h == nil {
		var err error
		if h, err = newClusterWatchHub(at, hs); err != nil {
			return nil, nil, err
		}
		if hs.all == nil {
			hs.all = map[*fleet.Resource]*clusterWatchHub{}
		}
		hs.all[at.res] = h
	}
	return h, h.join(of), nil
}
