package server

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/object"
)

// A version of the fleet means a place in the order in which this daemon sent the changes of all clusters. So that a
// watch of the fleet goes on after a restart, the order is written to disk as it happens: for each version the
// cluster, the object and the version there, without the object.
//
// After a restart, the first request for a resource finds the changes again in the logs of its clusters: those that the
// disk has, and those that the clusters send again because the disk did not have them yet. The ones of the order get
// their old versions, all others new ones. A watch that continues from an old version waits for that. A list
// does not: its version is the place in the order up to which the restored states have everything.
//
// What cannot be found ends the order. Before the first change that is missing, versions are valid as ever; those after
// it are 410, also if the process ended before it had written them.
//
// The other design was to give a version to a change when its cluster commits it, by the clock, so that the history on
// disk would have the order already. But then a change must wait until no cluster can still have an older one, so one
// slow cluster would delay the watches of all; and what was sent and not yet on disk would be sent twice.

const (
	// stateTimeout is how long a request or a watch that continues waits for the states of the clusters on disk,
	// resendTimeout how long for the changes that a cluster has to send again, and findTimeout for the changes on disk.
	stateTimeout  = 30 * time.Second
	resendTimeout = 5 * time.Second
	findTimeout   = 30 * time.Second
	// maxReplayed is how many changes of a cluster may come while the order is found. More of them may be coalesced, and
	// could not be told from those that were found.
	maxReplayed = 5000
	// savedFor is how long an order is kept on disk for clients that do not come back.
	savedFor = 10 * time.Minute
)

func (p *pastChange) inOrder() fleet.OrderedChange {
	return fleet.OrderedChange{Seq: p.seq, Cluster: p.cluster, Key: p.key, Version: p.version, Deleted: p.now == nil}
}

func (m *member) inOrder() fleet.OrderMember {
	return fleet.OrderMember{Cluster: m.cluster, UID: m.uid, From: m.from}
}

// keepOrder writes the whole order. The lock is held.
func (h *fleetWatchHub) keepOrder() {
	if h.order == nil {
		return
	}
	o := fleet.Order{Start: max(h.dropped, h.orderStart)}
	for _, m := range h.members {
		m.uid = m.of.UID()
		o.Members = append(o.Members, m.inOrder())
	}
	for user, shown := range h.restricted {
		o.Restricted = append(o.Restricted, shown.of(user))
	}
	h.advanced = 0
	for i := range h.ring {
		if h.ring[i].seq > o.Start {
			o.Changes = append(o.Changes, h.ring[i].inOrder())
		}
	}
	if h.last > o.Last() {
		o.Changes = append(o.Changes, fleet.OrderedChange{Seq: h.last})
	}
	for _, lost := range h.unknown {
		if lost.Before > o.Start {
			o.Unknown = append(o.Unknown, lost)
		}
	}
	h.order.Set(&o)
}

// forgetOrder begins a new order on disk: changes up to now cannot be found in the logs of the clusters any more. The
// lock is held.
func (h *fleetWatchHub) forgetOrder() {
	if h.order == nil {
		return
	}
	for _, m := range h.members {
		m.from = m.reached
	}
	h.orderStart = h.last
	h.keepOrder()
}

// renewOrder writes the order again if a part could not be written, or a cluster was recognised meanwhile.
func (h *fleetWatchHub) renewOrder() {
	h.mu.Lock()
	defer h.mu.Unlock()
	renew, synced := h.order.Failed(), false
	for _, m := range h.members {
		renew = renew || m.uid != m.of.UID()
		if m.initial && m.sub != nil && m.sub.HasSynced() {
			m.initial, synced = false, true // its first objects are in no log
		}
	}
	if synced {
		h.forgetOrder()
	} else if renew {
		h.keepOrder()
	}
}

// isLost reports whether a version was lost in a restart. The lock is held.
func (h *fleetWatchHub) isLost(version uint64) bool {
	for _, lost := range h.unknown {
		if lost.After < version && version < lost.Before {
			return true
		}
	}
	return false
}

func (h *fleetWatchHub) isRestoring() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.restoring != nil
}

// wait waits until the order from before a restart is known.
func (h *fleetWatchHub) wait(ctx context.Context) error {
	h.mu.Lock()
	restoring := h.restoring
	h.mu.Unlock()
	if restoring == nil {
		return nil
	}
	select {
	case <-restoring:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// waitFor is wait, if the hub has not reached a version.
func (h *fleetWatchHub) waitFor(ctx context.Context, version uint64) error {
	if version <= h.now() {
		return nil
	}
	return h.wait(ctx)
}

// beginRestore makes the hub answer lists from the restored states: their version is that of the last change before the
// first that is missing there.
func (h *fleetWatchHub) beginRestore(saved *fleet.Order, gvr schema.GroupVersionResource, clusters []*fleet.Cluster) {
	versions := map[string]object.Version{}
	for _, c := range clusters {
		if res, ok := c.Resource(gvr); ok && res.Synced() {
			versions[c.Name()] = res.Snapshot().Version()
		}
	}
	reached := saved.Start
	for _, m := range saved.Members {
		if v := versions[m.Cluster]; m.From != "" && (v == "" || v.Before(m.From)) {
			reached = saved.Start - 1 // the states are older than the order, so a watch cannot continue from this list
		}
	}
	for _, c := range saved.Changes {
		if reached < saved.Start || c.Cluster != "" && (versions[c.Cluster] == "" || versions[c.Cluster].Before(c.Version)) {
			break
		}
		reached = c.Seq
	}
	h.base, h.last, h.dropped = reached, reached, reached
	for _, u := range saved.Restricted { // the last one of a user counts
		h.setShown(u.User, shownSet{in: u.In, since: u.Since})
	}
	h.restoring = make(chan struct{})
}

// restore finds the changes of an order again.
func (h *fleetWatchHub) restore(ctx context.Context, saved *fleet.Order, gvr schema.GroupVersionResource,
	fl *fleet.Fleet) {
	members := awaitMembers(ctx, saved, gvr, fl)
	if ctx.Err() != nil { // the daemon stops, and what is on disk is for the next one
		h.mu.Lock()
		h.order = nil
		h.mu.Unlock()
		members = nil
	}
	for _, m := range members {
		m.reached = m.res.Snapshot().Version()
		if h.addMember(m.cluster, m.res, false) != nil {
			members = nil
			break
		}
	}
	found := findInTime(ctx, saved, members) // after the subscriptions, so that no change is between the two
	if found == nil {
		for res := range h.followed() {
			h.removeMember(res)
		}
	}
	for _, c := range fl.Clusters() { // their events wait for the end of this
		if res, ok := c.Resource(gvr); ok {
			h.addMember(c, res, found != nil || !res.Synced()) // members from before the restart are there already
		}
	}
	h.endRestore(found, members)
}

func (h *fleetWatchHub) followed() map[*fleet.Resource]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[*fleet.Resource]bool{}
	for res := range h.members {
		out[res] = true
	}
	return out
}

// endRestore makes the hub one that has what was found of the order, or, if that is nil, a new one.
func (h *fleetWatchHub) endRestore(found *foundOrder, members map[string]*savedMember) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.base = h.seq.Add(1)
	h.last, h.dropped = h.base, h.base
	if found != nil {
		h.dropped = found.dropped
		h.unknown = append(found.unknown, fleet.VersionSpan{After: found.end - 1, Before: h.base})
		for res, m := range h.members {
			of := members[m.cluster]
			if of == nil || of.res != res {
				continue
			}
			m.from, m.skips = of.from, of.logSince(m.from) // events come from the version of the subscription on
		}
		for _, p := range found.changes {
			h.remember(p)
		}
		for _, p := range found.later {
			p.seq = h.seq.Add(1)
			h.last = p.seq
			h.remember(p)
		}
	}
	close(h.restoring)
	h.restoring = nil
	h.keepOrder()
}

// dropSaved removes the orders that no client has asked for. The lock is held.
func (hs *fleetWatchHubs) dropSaved(now time.Time) {
	if len(hs.saved) == 0 {
		return
	}
	if hs.until.IsZero() {
		hs.until = now.Add(savedFor)
	}
	if now.After(hs.until) {
		hs.fleet.DropOldOrders()
		hs.saved = nil
	}
}

// dropOrder removes the order from disk.
func (h *fleetWatchHub) dropOrder() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.order.Drop()
}
