package server

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/fleet"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// ringLen is how many changes of a resource the view of all clusters remembers, for watches that
// go on from a version.
const ringLen = 4096

// restAfter is how long a fleetHub stays when nobody has listed or watched.
const restAfter = 10 * time.Minute

// fleetHub puts what happens to one resource in all clusters into one order, the daemon's own.
type fleetHub struct {
	seq  *atomic.Uint64 // of all resources, so that a version means one moment
	base uint64         // versions from before this hub say nothing

	mu      sync.Mutex
	last    uint64            // of what was told here
	ring    []*change         // the newest ones, oldest first
	dropped uint64            // the newest version that is no longer in ring
	changed map[where]uint64  // when an object last changed, by where it is; what is not here has not, since base
	feeds   map[*feed]scopeOf // and what each asks for
	members map[*fleet.Resource]fleet.Subscription
	ended   bool
	used    time.Time
}

// scopeOf is what a watch of all clusters asks for: everything, or one namespace of one cluster.
type scopeOf struct{ cluster, namespace string }

// where is an object among all clusters.
type where struct {
	cluster string
	key     object.Key
}

func newFleetHub(seq *atomic.Uint64) *fleetHub {
	now := seq.Load()
	return &fleetHub{seq: seq, base: now, last: now, dropped: now, changed: map[where]uint64{}, feeds: map[*feed]scopeOf{},
		members: map[*fleet.Resource]fleet.Subscription{}, used: time.Now()}
}

// admit follows a resource of a cluster. What it holds already is told only if news is true: to
// those who were there before it.
func (h *fleetHub) admit(cluster string, res *fleet.Resource, news bool) error {
	h.mu.Lock()
	_, have := h.members[res]
	h.mu.Unlock()
	if have {
		return nil
	}
	handle := func(e *fleet.Event) { h.handle(cluster, e) }
	var sub fleet.Subscription
	var err error
	if news {
		sub, err = res.Subscribe(handle)
	} else {
		sub, err = res.Subscribe(handle, fleet.FromNow())
	}
	if err != nil {
		return fmt.Errorf("follow %s of cluster %q: %w", res.Info().Name, cluster, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		sub.Remove()
		return errUnserved
	}
	h.members[res] = sub
	return nil
}

func (h *fleetHub) handle(cluster string, e *fleet.Event) {
	if e.Type == object.Resynced || e.Unchanged {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	seq := h.seq.Add(1)
	v := strconv.FormatUint(seq, 10)
	c := &change{cluster: cluster, key: e.Key, old: e.Old, now: e.New, version: v, order: object.Version(v)}
	h.last = seq
	if e.New == nil {
		delete(h.changed, where{cluster, e.Key})
	} else {
		h.changed[where{cluster, e.Key}] = seq
	}
	h.remember(c)
	namespace, _ := e.Key.Split()
	for f, of := range h.feeds {
		if of.cluster == "" || of.cluster == cluster && of.namespace == namespace {
			f.push(c)
		}
	}
}

func (h *fleetHub) remember(c *change) {
	if len(h.ring) == ringLen {
		h.dropped = versionNumber(h.ring[ringLen/2-1].order)
		kept := copy(h.ring, h.ring[ringLen/2:])
		clear(h.ring[kept:])
		h.ring = h.ring[:kept]
	}
	h.ring = append(h.ring, c)
}

func versionNumber(v object.Version) uint64 {
	n, err := strconv.ParseUint(string(v), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// version gives the version under which an object is shown.
func (h *fleetHub) version(cluster string, key object.Key) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if seq, ok := h.changed[where{cluster, key}]; ok {
		return strconv.FormatUint(seq, 10)
	}
	return strconv.FormatUint(h.base, 10)
}

// now gives the version of a list that is read after this call: whatever happened up to it is in the
// stores by then.
func (h *fleetHub) now() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.used = time.Now()
	return strconv.FormatUint(max(h.last, h.base), 10)
}

// join adds a watch, and gives what happened since a version; ErrGone where that is not known.
// An empty version begins now.
func (h *fleetHub) join(of scopeOf, from object.Version) (*feed, []*change, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.used = time.Now()
	var missed []*change
	if from != "" {
		n, err := strconv.ParseUint(string(from), 10, 64)
		if err != nil || n < h.dropped {
			return nil, nil, fmt.Errorf("too old resource version: %s (%d): %w", from, h.last, store.ErrGone)
		}
		for _, c := range h.ring {
			namespace, _ := c.key.Split()
			if versionNumber(c.order) > n && (of.cluster == "" || of.cluster == c.cluster && of.namespace == namespace) {
				missed = append(missed, c)
			}
		}
	}
	f := &feed{wake: make(chan struct{}, 1)}
	if h.ended {
		f.err = errUnserved
	} else {
		h.feeds[f] = of
	}
	return f, missed, nil
}

func (h *fleetHub) leave(f *feed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.feeds, f)
	h.used = time.Now()
}

// reached says how far a watch is to which nothing more is on its way.
func (h *fleetHub) reached(f *feed) (string, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	return strconv.FormatUint(max(h.last, h.base), 10), len(f.waiting) == 0 && f.err == nil
}

// part ends the membership of a resource that is mirrored no longer. Its objects are gone without
// a word from anybody, so whoever watches has to list again.
func (h *fleetHub) part(res *fleet.Resource) {
	h.mu.Lock()
	defer h.mu.Unlock()
	sub, ok := h.members[res]
	if !ok {
		return
	}
	delete(h.members, res)
	sub.Remove()
	h.ring, h.changed = nil, map[where]uint64{}
	h.last = h.seq.Add(1)
	h.base, h.dropped = h.last, h.last
	for f := range h.feeds {
		f.end(errSetBack)
	}
}

func (h *fleetHub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	for _, sub := range h.members {
		sub.Remove()
	}
	clear(h.members)
	for f := range h.feeds {
		f.end(errUnserved)
	}
}

// idle reports whether nobody has asked for a while.
func (h *fleetHub) idle(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.feeds) == 0 && now.Sub(h.used) > restAfter
}

// fleetHubs are those in use, by resource.
type fleetHubs struct {
	seq atomic.Uint64
	mu  sync.Mutex
	all map[schema.GroupVersionResource]*fleetHub
}

// get finds the hub of a resource, or makes it and has it follow every cluster.
func (hs *fleetHubs) get(gvr schema.GroupVersionResource, clusters []*fleet.Cluster) *fleetHub {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h := hs.all[gvr]
	if h != nil {
		return h
	}
	h = newFleetHub(&hs.seq)
	for _, c := range clusters {
		if res, ok := c.Resource(gvr); ok {
			h.admit(c.Name(), res, false) //nolint:errcheck // one that is just ending is none to follow
		}
	}
	if hs.all == nil {
		hs.all = map[schema.GroupVersionResource]*fleetHub{}
	}
	hs.all[gvr] = h
	return h
}

// follow takes in what joined, lets go of what left, and ends what nobody uses.
func (hs *fleetHubs) follow(clusters []*fleet.Cluster, now time.Time) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for gvr, h := range hs.all {
		if h.idle(now) {
			h.close()
			delete(hs.all, gvr)
			continue
		}
		present := map[*fleet.Resource]bool{}
		for _, c := range clusters {
			if res, ok := c.Resource(gvr); ok {
				present[res] = true
				h.admit(c.Name(), res, true) //nolint:errcheck // see get
			}
		}
		for _, res := range h.strangers(present) {
			h.part(res)
		}
	}
}

func (h *fleetHub) strangers(present map[*fleet.Resource]bool) (out []*fleet.Resource) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for res := range h.members {
		if !present[res] {
			out = append(out, res)
		}
	}
	return out
}

func (hs *fleetHubs) close() {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for _, h := range hs.all {
		h.close()
	}
	clear(hs.all)
}
