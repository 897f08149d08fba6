package server

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// ringLen is how many changes of a resource are kept for watches that continue from a version of the fleet, and
// ringBytes how large their objects may be together.
const (
	ringLen   = 4096
	ringBytes = 48 << 20
)

// hubIdleAfter is how long a fleetWatchHub is kept without a list or a watch.
const hubIdleAfter = 10 * time.Minute

// fleetWatchHub is the watchHub of one resource in all clusters. It puts the changes of all clusters into one order,
// the daemon's own.
type fleetWatchHub struct {
	seq   *atomic.Uint64     // shared by all resources, so that a version means one moment
	order *fleet.OrderWriter // nil if the order of the changes is not kept on disk

	mu      sync.Mutex
	base    uint64              // the version at which this hub was made
	last    uint64              // version of the newest change
	ring    []pastChange        // the newest changes, oldest first
	bytes   int                 // of the objects in ring
	dropped uint64              // the newest version that is no longer in ring
	changed map[fleetKey]uint64 // the version of each object that has changed since base
	feeds   feeds
	members map[*fleet.Resource]*member
	ended   bool
	used    time.Time

	restoring chan struct{}       // closed when the order from before a restart is known, and nil from then on
	unknown   []fleet.VersionSpan // versions that were lost in a restart
	// orderStart is the version up to which changes cannot be found in the logs of the clusters after a restart.
	orderStart uint64
	restricted map[uint64]shownSet // what users were shown that were shown only a part, by stableUser
	shownSize  int                 // of clusters in restricted
	advanced   int                 // versions without a change since the order was written as a whole
}

// member is a resource of a cluster that the hub follows. sub is nil until the subscription is made.
type member struct {
	cluster string
	sub     fleet.Subscription
	epoch   uint64
	of      *fleet.Cluster
	uid     string                      // of the cluster, as it was written to disk
	from    object.Version              // the version before the first change in the ring; "" if that is not known
	reached object.Version              // the version of the last event
	initial bool                        // its first objects are being sent
	skips   map[replayedChange]struct{} // changes that are in the ring, although their events may still come
}

func (m *member) remove() {
	if m.sub != nil {
		m.sub.Remove()
	}
}

// pastChange is a change in the ring, without its encodings.
type pastChange struct {
	cluster  string
	key      object.Key
	old, now *fleet.Entry
	seq      uint64
	version  object.Version // of the resource in the cluster
}

// size is the length of the object's JSON. An object that has changed again is kept once: as the new state of one
// change and the old one of the next.
func (p *pastChange) size() int {
	if p.now == nil {
		return sizeOf(p.old)
	}
	return sizeOf(p.now)
}

func (p *pastChange) change() *change {
	v := strconv.FormatUint(p.seq, 10)
	return &change{cluster: p.cluster, key: p.key, old: p.old, now: p.now, version: v, order: object.Version(v)}
}

// fleetKey identifies an object among all clusters.
type fleetKey struct {
	cluster string
	key     object.Key
}

// newFleetWatchHub returns a hub that begins with a new version: changes between an earlier hub and this one are not
// known.
func newFleetWatchHub(seq *atomic.Uint64) *fleetWatchHub {
	now := seq.Add(1)
	return &fleetWatchHub{seq: seq, base: now, last: now, dropped: now, changed: map[fleetKey]uint64{}, feeds: feeds{},
		members: map[*fleet.Resource]*member{}, used: time.Now()}
}

// addMember follows a resource of a cluster. Its current objects are sent to watches as additions only if initial is
// true.
func (h *fleetWatchHub) addMember(cluster *fleet.Cluster, res *fleet.Resource, initial bool) error {
	m := &member{cluster: cluster.Name(), of: cluster, uid: cluster.UID(), epoch: res.Health().Epoch}
	if !initial {
		m.from = res.Snapshot().Version()
		m.reached = m.from
	}
	m.initial = initial
	h.mu.Lock()
	_, have := h.members[res]
	if !have && !h.ended {
		h.members[res] = m // before the first event, which needs it
		h.order.AddMember(m.inOrder())
	}
	ended := h.ended
	h.mu.Unlock()
	switch {
	case have:
		return nil
	case ended:
		return errUnserved
	}
	handle := h.handler(cluster.Name(), res, res.Done())
	sub, err := res.Subscribe(handle, &fleet.HandlerOptions{FromNow: !initial})
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		delete(h.members, res)
		return fmt.Errorf("follow %s of cluster %q: %w", res.Info().Name, cluster.Name(), err)
	}
	if h.members[res] != m {
		sub.Remove()
		return errUnserved
	}
	m.sub = sub
	return nil
}

// roomEvery is after how many initial objects the handler of a joining cluster checks whether the watches keep up.
const roomEvery = 64

// handler returns the handler of a resource. A joining cluster brings thousands of objects at once. The handler sends
// them no faster than the watches are read, so that it ends none of them; no other handler waits for this one.
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

// waitForRoom waits until the queues of all watches have room. It waits at most writeTimeout for a watch that is not
// read at all.
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
	for h.restoring != nil { // the restore has a timeout
		restoring := h.restoring
		h.mu.Unlock()
		<-restoring
		h.mu.Lock()
	}
	m := h.members[res]
	if m == nil {
		return // the cluster has left
	}
	if m.skips != nil {
		if _, ok := m.skips[replayedChange{e.Key, e.Version, e.New == nil}]; ok {
			return
		}
		m.skips = nil // events come in the order of the log
	}
	newEpoch := e.Epoch != m.epoch
	m.epoch, m.reached = e.Epoch, e.Version
	h.publish(pastChange{cluster: cluster, key: e.Key, old: e.Old, now: e.New, seq: h.seq.Add(1),
		version: e.Version})
	if newEpoch && !e.Initial {
		h.forgetOrder() // versions of the cluster begin again
	}
}

// publish sends a change to the watches that it concerns, and remembers it.
func (h *fleetWatchHub) publish(p pastChange) {
	h.last = p.seq
	c := p.change()
	h.order.Add(p.inOrder()) // before remember, which may write the whole order, with this change
	h.remember(p)
	h.feeds.push(c)
}

// remember adds a change to the ring and drops old ones.
func (h *fleetWatchHub) remember(p pastChange) {
	if p.now == nil {
		delete(h.changed, fleetKey{p.cluster, p.key})
	} else {
		h.changed[fleetKey{p.cluster, p.key}] = p.seq
	}
	h.ring = append(h.ring, p)
	h.bytes += p.size()
	if len(h.ring) <= ringLen && h.bytes <= ringBytes {
		return
	}
	from := map[string]object.Version{}
	drop := 0 // more than necessary, so that this does not happen at each change
	for ; drop < len(h.ring)-1 && (len(h.ring)-drop > ringLen/2 || h.bytes > ringBytes/2); drop++ {
		p := &h.ring[drop]
		h.bytes -= p.size()
		h.dropped = p.seq
		from[p.cluster] = p.version
	}
	kept := copy(h.ring, h.ring[drop:])
	clear(h.ring[kept:])
	h.ring = h.ring[:kept]
	for _, m := range h.members {
		if v, ok := from[m.cluster]; ok {
			m.from = v
		}
	}
	h.keepOrder()
}

// version returns the version to show for an object in an answer of version upTo. A later change of the object may
// already be in its content, but is still sent to watches, so it must be newer than this version.
func (h *fleetWatchHub) version(cluster string, key object.Key, upTo uint64) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	seq, ok := h.changed[fleetKey{cluster, key}]
	if !ok {
		seq = h.base
	}
	return strconv.FormatUint(min(seq, upTo), 10)
}

// now returns the version for a list that is read after this call: the stores contain every change up to it.
func (h *fleetWatchHub) now() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.used = time.Now()
	return max(h.last, h.base)
}

// begin begins a new version without a change of an object. The lock is held.
func (h *fleetWatchHub) begin(version uint64) {
	h.last = version
	h.order.Add(fleet.OrderedChange{Seq: version})
	if h.advanced++; h.advanced > ringLen {
		h.keepOrder()
	}
}

// join adds a watch and returns the changes since a version, or ErrGone if they are not known. An empty version means
// now.
func (h *fleetWatchHub) join(of watchScope, from object.Version) (*feed, []*change, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.used = time.Now()
	var missed []*change
	if from != "" {
		n, err := strconv.ParseUint(string(from), 10, 64)
		// A version above all is of a daemon whose clock was ahead.
		if err != nil || n < h.dropped || n > h.seq.Load() || h.isLost(n) {
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

// done implements watchHub. Watches of the fleet do not end when a cluster leaves the fleet.
func (h *fleetWatchHub) done() <-chan struct{} { return nil }

// leave implements watchHub.
func (h *fleetWatchHub) leave(f *feed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.feeds.remove(f)
	f.end(errUnserved) // no handler needs to wait for room any more
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

// removeMember stops following a resource that is no longer mirrored. Its objects disappear without events, so clients
// have to relist. Objects of other clusters keep their versions.
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
	h.last = h.seq.Add(1)
	h.forgetOrder()
	h.ring, h.bytes = nil, 0
	h.dropped = h.last
	h.feeds.end(errHistoryReset)
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

// idle reports whether the hub has had no list or watch for hubIdleAfter.
func (h *fleetWatchHub) idle(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.restoring == nil && len(h.feeds) == 0 && now.Sub(h.used) > hubIdleAfter
}
