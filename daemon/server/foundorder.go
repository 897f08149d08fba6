package server

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sort"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// replayedChange identifies a change in the log of a cluster.
type replayedChange struct {
	key     object.Key
	version object.Version
	deleted bool
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
