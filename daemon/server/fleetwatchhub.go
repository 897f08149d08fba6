package server

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// ringLen is how many changes of a resource the view of all clusters remembers, for watches that
// go on from a version, and ringBytes how large their objects may be together.
const (
	ringLen   = 4096
	ringBytes = 32 << 20
)

// hubIdleAfter is how long a fleetWatchHub stays when nobody has listed or watched.
const hubIdleAfter = 10 * time.Minute

// fleetWatchHub is the watchHub of one resource in all clusters. It puts what happens there into one order, the daemon's
// own.
type fleetWatchHub struct {
	seq  *atomic.Uint64 // of all resources, so that a version means one moment
	base uint64         // versions from before this hub say nothing

	mu      sync.Mutex
	last    uint64              // of what was told here
	ring    []pastChange        // the newest ones, oldest first
	bytes   int                 // of the objects in ring
	dropped uint64              // the newest version that is no longer in ring
	changed map[fleetKey]uint64 // when an object last changed, by where it is; what is not here has not, since base
	feeds   feeds
	members map[*fleet.Resource]member
	ended   bool
	used    time.Time
}

// member is a resource of a cluster that is followed. It has no subscription while that is being made.
type member struct {
	cluster string
	sub     fleet.Subscription
}

func (m member) remove() {
	if m.sub != nil {
		m.sub.Remove()
	}
}

// pastChange is a change that is remembered: without what was encoded of it for those who were there.
type pastChange struct {
	cluster  string
	key      object.Key
	old, now *fleet.Entry
	seq      uint64
}

func (p *pastChange) size() int { return sizeOf(p.old) + sizeOf(p.now) }

func (p *pastChange) change() *change {
	v := strconv.FormatUint(p.seq, 10)
	return &change{cluster: p.cluster, key: p.key, old: p.old, now: p.now, version: v, order: object.Version(v)}
}

// where is an object among all clusters.
type fleetKey struct {
	cluster string
	key     object.Key
}

// newFleetWatchHub begins with a version of its own: what happened before it, since an earlier one was let go of, is not
// known.
func newFleetWatchHub(seq *atomic.Uint64) *fleetWatchHub {
	now := seq.Add(1)
	return &fleetWatchHub{seq: seq, base: now, last: now, dropped: now, changed: map[fleetKey]uint64{}, feeds: feeds{},
		members: map[*fleet.Resource]member{}, used: time.Now()}
}

// admit follows a resource of a cluster. What it holds already is told only if news is true: to
// those who were there before it.
func (h *fleetWatchHub) addMember(cluster string, res *fleet.Resource, news bool) error {
	h.mu.Lock()
	_, have := h.members[res]
	if !have && !h.ended {
		h.members[res] = member{cluster: cluster} // before the first event comes
	}
	ended := h.ended
	h.mu.Unlock()
	switch {
	case have:
		return nil
	case ended:
		return errUnserved
	}
	handle := h.handler(cluster, res, res.Done())
	sub, err := res.Subscribe(handle, &fleet.HandlerOptions{FromNow: !news})
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		delete(h.members, res)
		return fmt.Errorf("follow %s of cluster %q: %w", res.Info().Name, cluster, err)
	}
	if _, member := h.members[res]; !member {
		sub.Remove()
		return errUnserved
	}
	h.members[res] = member{cluster, sub}
	return nil
}

// roomEvery is after how many objects of a cluster that joins its handler looks whether the watches keep up.
const roomEvery = 64

// handler makes the handler of a resource. A cluster that joins brings thousands of objects at once; they are told no
// faster than the watches are read, so that it cuts none of them. Nobody else waits for that.
func (h *fleetWatchHub) handler(cluster string, res *fleet.Resource, gone <-chan struct{}) func(*fleet.Event) {
	initial := 0
	return func(e *fleet.Event) {
		if e.Initial {
			if initial++; initial%roomEvery == 0 {
				h.waitForRoom(gone)
			}
		}
		h.handle(cluster, res, e)
	}
}

// waitForRoom waits until no watch has too much to read. One that reads nothing at all is waited for as long as for a
// write.
func (h *fleetWatchHub) waitForRoom(gone <-chan struct{}) {
	timeout := time.NewTimer(writeTimeout)
	defer timeout.Stop()
	h.mu.Lock()
	var joined []*feed
	for _, same := range h.feeds {
		joined = slices.AppendSeq(joined, maps.Keys(same))
	}
	h.mu.Unlock()
	for _, f := range joined {
		for {
			room, full := f.full()
			if !full {
				break
			}
			select {
			case <-room:
			case <-gone:
				return
			case <-timeout.C:
				return
			}
		}
	}
}

func (h *fleetWatchHub) handle(cluster string, res *fleet.Resource, e *fleet.Event) {
	if e.Type == object.Resynced || e.Unchanged {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, member := h.members[res]; !member {
		return // it has left meanwhile
	}
	p := pastChange{cluster: cluster, key: e.Key, old: e.Old, now: e.New, seq: h.seq.Add(1)}
	h.last = p.seq
	if e.New == nil {
		delete(h.changed, fleetKey{cluster, e.Key})
	} else {
		h.changed[fleetKey{cluster, e.Key}] = p.seq
	}
	c := p.change()
	h.remember(p)
	h.feeds.push(c)
}

// remember keeps a change, and of those before as many as may be kept.
func (h *fleetWatchHub) remember(p pastChange) {
	h.ring = append(h.ring, p)
	h.bytes += p.size()
	if len(h.ring) <= ringLen && h.bytes <= ringBytes {
		return
	}
	drop := 0 // some more than has to be, so that it is not done each time
	for ; drop < len(h.ring)-1 && (len(h.ring)-drop > ringLen/2 || h.bytes > ringBytes/2); drop++ {
		p := &h.ring[drop]
		h.bytes -= p.size()
		h.dropped = p.seq
	}
	kept := copy(h.ring, h.ring[drop:])
	clear(h.ring[kept:])
	h.ring = h.ring[:kept]
}

// version gives the version under which an object is shown to somebody who was told of everything up to a version.
// What happened to it later may be in its content or not; it will be told, and must be news then.
func (h *fleetWatchHub) version(cluster string, key object.Key, upTo uint64) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	seq, ok := h.changed[fleetKey{cluster, key}]
	if !ok {
		seq = h.base
	}
	return strconv.FormatUint(min(seq, upTo), 10)
}

// now gives the version of a list that is read after this call: whatever happened up to it is in the
// stores by then.
func (h *fleetWatchHub) now() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.used = time.Now()
	return max(h.last, h.base)
}

// join adds a watch, and gives what happened since a version; ErrGone where that is not known.
// An empty version begins now.
func (h *fleetWatchHub) join(of watchScope, from object.Version) (*feed, []*change, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.used = time.Now()
	var missed []*change
	if from != "" {
		n, err := strconv.ParseUint(string(from), 10, 64)
		if err != nil || n < h.dropped || n > h.seq.Load() { // later than all: of a daemon whose clock was ahead
			return nil, nil, fmt.Errorf("too old resource version: %s (%d): %w", from, h.last, store.ErrGone)
		}
		for i := range h.ring {
			if p := &h.ring[i]; p.seq > n && of.concerns(p.cluster, p.key) {
				missed = append(missed, p.change())
			}
		}
	}
	f := h.feeds.add(of)
	if h.ended {
		f.end(errUnserved)
	}
	return f, missed, nil
}

// done implements watchHub. The view of all clusters does not end with one of them.
func (h *fleetWatchHub) done() <-chan struct{} { return nil }

// leave implements watchHub.
func (h *fleetWatchHub) leave(f *feed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.feeds.remove(f)
	f.end(errUnserved) // nobody need wait for it to read
	h.used = time.Now()
}

// reached implements watchHub.
func (h *fleetWatchHub) reached(f *feed, _ object.Version) (string, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	return strconv.FormatUint(max(h.last, h.base), 10), len(f.waiting) == 0 && f.err == nil
}

// part ends the membership of a resource that is mirrored no longer. Its objects are gone without
// a word from anybody, so whoever watches has to list again; those of other clusters keep their versions.
func (h *fleetWatchHub) removeMember(res *fleet.Resource) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m, ok := h.members[res]
	if !ok {
		return
	}
	delete(h.members, res)
	m.remove()
	maps.DeleteFunc(h.changed, func(at fleetKey, _ uint64) bool { return at.cluster == m.cluster })
	h.ring, h.bytes = nil, 0
	h.last = h.seq.Add(1)
	h.dropped = h.last
	h.feeds.end(errSetBack)
}

func (h *fleetWatchHub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	for _, m := range h.members {
		m.remove()
	}
	clear(h.members)
	h.feeds.end(errUnserved)
}

// idle reports whether nobody has asked for a while.
func (h *fleetWatchHub) idle(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.feeds) == 0 && now.Sub(h.used) > hubIdleAfter
}

// fleetWatchHubs are those in use, by resource.
type fleetWatchHubs struct {
	seq atomic.Uint64
	mu  sync.Mutex
	all map[schema.GroupVersionResource]*fleetWatchHub
}

// fresh says whether a list that is read now is as new as a version of the fleet. The daemon gives out none that it
// has not reached, so there is nothing to wait for. What the clusters were at one version cannot be had again.
func (hs *fleetWatchHubs) checkFresh(v object.Version, exact bool) error {
	n, err := strconv.ParseUint(string(v), 10, 64)
	switch now := hs.seq.Load(); {
	case err != nil:
		return badRequest("the resource version %q is no number", clip(string(v)))
	case exact:
		return apierrors.NewResourceExpired(fmt.Sprintf("The provided resource version is not available: %d: lists of "+
			"all clusters are of now", n))
	case n > now:
		return tooLarge(v, object.Version(strconv.FormatUint(now, 10)))
	}
	return nil
}

// get returns the hub of a resource, or makes one that follows the resource in every cluster. If no cluster has the
// resource, the hub has ended and is not kept: clients may ask for any number of resources that do not exist, and a
// watch that joins such a hub, because a cluster has served the resource since, ends at once and is opened again.
func (hs *fleetWatchHubs) get(gvr schema.GroupVersionResource, fl *fleet.Fleet) *fleetWatchHub {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h := hs.all[gvr]
	if h != nil {
		return h
	}
	h = newFleetWatchHub(&hs.seq)
	known := false
	for _, c := range fl.Clusters() {
		if res, ok := c.Resource(gvr); ok {
			known = true
			// No client has seen an object of a member that is not synced, so its objects are sent as additions.
			h.addMember(c.Name(), res, !res.Synced()) // fails only for a resource that is stopping
		}
	}
	if !known {
		h.close()
		return h
	}
	if hs.all == nil {
		hs.all = map[schema.GroupVersionResource]*fleetWatchHub{}
	}
	hs.all[gvr] = h
	return h
}

// follow takes in what joined, lets go of what left, and ends what nobody uses.
func (hs *fleetWatchHubs) follow(clusters []*fleet.Cluster, now time.Time) {
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
				h.addMember(c.Name(), res, true) // see get
			}
		}
		for _, res := range h.departed(present) {
			h.removeMember(res)
		}
	}
}

func (h *fleetWatchHub) departed(present map[*fleet.Resource]bool) (out []*fleet.Resource) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for res := range h.members {
		if !present[res] {
			out = append(out, res)
		}
	}
	return out
}

func (hs *fleetWatchHubs) close() {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for _, h := range hs.all {
		h.close()
	}
	clear(hs.all)
}
