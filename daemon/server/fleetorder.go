package server

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sort"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
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
	// stateTimeout is how long a watch that continues waits for the states of the clusters on disk, resendTimeout how
	// long for the changes that a cluster has to send again, and findTimeout for the changes on disk.
	stateTimeout  = 30 * time.Second
	resendTimeout = 5 * time.Second
	findTimeout   = 30 * time.Second
	// maxReplayed is how many changes of a cluster may come while the order is found. More of them may be coalesced, and
	// could not be told from those that were found.
	maxReplayed = 5000
	// savedFor is how long an order is kept on disk for clients that do not come back.
	savedFor = 10 * time.Minute
)

// replayedChange identifies a change in the log of a cluster.
type replayedChange struct {
	key     object.Key
	version object.Version
	deleted bool
}

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

// findInTime is findOrder, and gives up if the disk hangs.
func findInTime(ctx context.Context, saved *fleet.Order, members map[string]*savedMember) *foundOrder {
	if members == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	found := make(chan *foundOrder, 1)
	go func() { found <- findOrder(saved, members) }() // ends when the disk answers
	select {
	case f := <-found:
		return f
	case <-ctx.Done():
		return nil
	}
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

// savedMember is a cluster of an order, and its changes.
type savedMember struct {
	name    string
	cluster *fleet.Cluster
	res     *fleet.Resource
	from    object.Version // the log has the changes after it
	reached object.Version // about where its events begin
	log     []store.LogEntry[*fleet.Object]
	changes []fleet.OrderedChange // of the cluster, in the order
}

// logSince returns the changes of the log from a version on.
func (m *savedMember) logSince(v object.Version) map[replayedChange]struct{} {
	out := map[replayedChange]struct{}{}
	for i := range m.log {
		if l := &m.log[i]; !l.Version.Before(v) {
			out[replayedOf(l)] = struct{}{}
		}
	}
	return out
}

func replayedOf(l *store.LogEntry[*fleet.Object]) replayedChange {
	return replayedChange{l.Key, l.Version, l.New == nil}
}

// awaitMembers waits until the clusters of an order are there and have sent its last changes. A cluster that does not
// send them in time lacks them. It returns nil if one is not there, or is another one.
func awaitMembers(ctx context.Context, saved *fleet.Order, gvr schema.GroupVersionResource,
	fl *fleet.Fleet) map[string]*savedMember {
	members := map[string]*savedMember{}
	for _, m := range saved.Members {
		if members[m.Cluster] != nil {
			return nil // its resource was being replaced
		}
		members[m.Cluster] = &savedMember{name: m.Cluster, from: m.From}
	}
	for _, c := range saved.Changes {
		if m := members[c.Cluster]; m != nil {
			m.changes = append(m.changes, c)
		}
	}
	restored, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	for _, of := range saved.Members {
		m := members[of.Cluster]
		if of.From == "" && len(m.changes) == 0 {
			delete(members, of.Cluster) // no client has seen anything of it
			continue
		}
		if m.cluster, m.res = awaitMember(restored, of, gvr, fl); m.res == nil {
			return nil
		}
		first := of.From
		if first == "" {
			first = m.changes[0].Version
		}
		if m.res.WaitVersion(restored, first) != nil && !m.res.Synced() {
			return nil
		}
	}
	resent, cancelResent := context.WithTimeout(ctx, resendTimeout)
	defer cancelResent()
	for _, m := range members {
		if n := len(m.changes); n > 0 {
			_ = m.res.WaitVersion(resent, m.changes[n-1].Version) // otherwise, it lacks what the cluster has not sent
		}
	}
	return members
}

// awaitMember waits until a cluster of an order is there.
func awaitMember(ctx context.Context, of fleet.OrderMember, gvr schema.GroupVersionResource,
	fl *fleet.Fleet) (*fleet.Cluster, *fleet.Resource) {
	for {
		changed := fl.Changed()
		if c, ok := fl.Cluster(of.Cluster); ok {
			if res, ok := c.Resource(gvr); ok {
				if of.UID == "" || c.UID() != of.UID {
					return nil, nil
				}
				return c, res
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, nil
		}
	}
}

// since returns the changes after one of some versions; there are none after the last.
func (m *savedMember) since(versions []object.Version, i int) (iter.Seq[store.LogEntry[*fleet.Object]], error) {
	if i >= len(versions) {
		return nil, store.ErrGone
	}
	return m.res.Since(versions[i])
}

// read reads the log of a member from as far back as it goes.
func (m *savedMember) read() bool {
	versions := make([]object.Version, 0, len(m.changes)+1)
	if m.from != "" {
		versions = append(versions, m.from)
	}
	for _, c := range m.changes {
		versions = append(versions, c.Version)
	}
	first := 0
	log, err := m.since(versions, first) // reads all changes from disk, so not more often than necessary
	if errors.Is(err, store.ErrGone) {
		first = 1 + sort.Search(len(versions)-1, func(i int) bool {
			_, err := m.since(versions, 1+i)
			return err == nil
		})
		log, err = m.since(versions, first)
	}
	if err != nil {
		return false
	}
	m.from = versions[first]
	if m.res.Health().Epoch != 0 || m.res.Snapshot().Version().Before(m.from) {
		return false // the cluster's history was reset
	}
	for l := range log {
		if l.Old == nil || l.New == nil || l.Old.Version != l.New.Version || l.Old.UID != l.New.UID {
			m.log = append(m.log, l)
		}
	}
	return true
}

// foundOrder is what was found of an order.
type foundOrder struct {
	dropped uint64       // the changes after this version were found
	end     uint64       // and before this one
	changes []pastChange // these changes
	later   []pastChange // changes that belong behind them and have no version yet
	unknown []fleet.VersionSpan
}

// findOrder finds the changes of an order in the logs of its members. It returns nil if nothing of the order is left.
func findOrder(saved *fleet.Order, members map[string]*savedMember) *foundOrder {
	f := &foundOrder{dropped: saved.Start, end: saved.Last() + 1, unknown: saved.Unknown}
	for _, of := range saved.Members {
		m := members[of.Cluster]
		if m == nil {
			continue
		}
		if !m.read() {
			return nil
		}
		if len(m.logSince(m.reached)) > maxReplayed {
			return nil
		}
		f.add(m)
	}
	if f.dropped >= f.end {
		return nil
	}
	f.order()
	return f
}

// order puts the changes of all members into their order, when it is known which are missing.
func (f *foundOrder) order() {
	all := f.changes
	f.changes = nil
	for _, p := range all {
		switch {
		case p.seq == 0 || p.seq >= f.end:
			f.later = append(f.later, p)
		case p.seq > f.dropped:
			f.changes = append(f.changes, p)
		}
	}
	slices.SortStableFunc(f.changes, func(a, b pastChange) int { return cmp.Compare(a.seq, b.seq) })
}

// add finds the changes of one member. Those that are not in the order have no version.
func (f *foundOrder) add(m *savedMember) {
	next := 0 // index of the first change that was not found yet
	for next < len(m.changes) && !m.from.Before(m.changes[next].Version) {
		f.dropped = max(f.dropped, m.changes[next].Seq)
		next++
	}
	if n := len(m.changes); n > 0 && next == n && m.changes[n-1].Version == m.from {
		f.dropped = f.end // more changes of this version may have followed
	}
	at := map[replayedChange]int{}
	for i, c := range m.changes[next:] {
		at[replayedChange{c.Key, c.Version, c.Deleted}] = next + i
	}
	last := -1 // index of the last change in the log that is in the order
	for i := range m.log {
		if _, ordered := at[replayedOf(&m.log[i])]; ordered {
			last = i
		}
	}
	sent := map[object.Key]*fleet.Entry{} // what clients were sent last, where that is not the old state in the log
	for i := range m.log {
		l := &m.log[i]
		old, known := sent[l.Key]
		if !known {
			old = l.Old
		}
		p := pastChange{cluster: m.name, key: l.Key, old: old, now: l.New, version: l.Version}
		pos, ordered := at[replayedOf(l)]
		switch {
		case ordered && pos >= next:
			for ; next < pos; next++ {
				f.dropped = max(f.dropped, m.changes[next].Seq)
			}
			p.seq = m.changes[pos].Seq
			next++
		case i < last:
			sent[l.Key] = old // no client was sent this state, but a later one
			continue
		}
		sent[l.Key] = l.New
		if p.old != nil || p.now != nil {
			f.changes = append(f.changes, p)
		}
	}
	if next < len(m.changes) {
		f.end = min(f.end, m.changes[next].Seq)
	}
}

// noteShown remembers, also over a restart, what a user is shown, and returns the version from which on it is. If
// changed is true, that version is a new one, above all versions of answers that showed the user something else.
//
// A user may have several clients, and a change of rights reaches one after the other. What is remembered here is one
// for all of them, so every change begins a new version, also a change back: after a restart, clients that were sent an
// older version list again.
func (h *fleetWatchHub) noteShown(user uint64, in []fleet.ShownIn, changed bool) (since uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	was, known := h.restricted[user]
	changed = changed || len(was.in) == 0 || !sameShown(was.in, in)
	next := shownSet{in: mergeShown(slices.Clone(in), was.in), since: was.since}
	if !changed && len(next.in) == len(was.in) {
		return was.since
	}
	if changed {
		next.since = h.seq.Add(1)
	}
	if !known && len(h.restricted) >= maxRestricted {
		clear(h.restricted)
		h.shownSize = 0
		h.forgetOrder() // after a restart, all watches are 410
	}
	h.setShown(user, next)
	h.order.AddRestricted(next.of(user)) // before its version, so that the disk has none without what it shows
	if changed {
		h.begin(next.since)
	}
	return next.since
}

// setShown remembers what a user is shown. If that is too much, it forgets what others are shown, and that they are
// restricted it does not. The lock is held.
func (h *fleetWatchHub) setShown(user uint64, next shownSet) {
	if h.restricted == nil {
		h.restricted = map[uint64]shownSet{}
	}
	h.shownSize += len(next.in) - len(h.restricted[user].in)
	h.restricted[user] = next
	for other, shown := range h.restricted { // in random order
		if h.shownSize <= maxShownOnDisk {
			return
		}
		if other != user {
			h.shownSize -= len(shown.in)
			h.restricted[other] = shownSet{}
		}
	}
}

const (
	// maxRestricted is how many restricted users of a resource are remembered over a restart, and maxShownOnDisk of how
	// many clusters in all it is remembered what they are shown.
	maxRestricted  = 10_000
	maxShownOnDisk = 50_000
)

// lastShown returns what a user was shown last, in this process or before a restart, if that is remembered.
func (h *fleetWatchHub) lastShown(user uint64) (was shownSet, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	was = h.restricted[user]
	return was, len(was.in) > 0
}

// wasRestricted reports whether a user was shown only a part, in this process or before a restart.
func (h *fleetWatchHub) wasRestricted(user uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, restricted := h.restricted[user]
	return restricted
}

// dropOrder removes the order from disk.
func (h *fleetWatchHub) dropOrder() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.order.Drop()
}
