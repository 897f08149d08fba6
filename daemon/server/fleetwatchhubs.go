package server

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/object"
)

// fleetWatchHubs has the hubs in use, by resource.
type fleetWatchHubs struct {
	seq  atomic.Uint64
	stop context.CancelFunc // ends what restores hubs
	ctx  context.Context
	work sync.WaitGroup

	fleet *fleet.Fleet
	mu    sync.Mutex
	all   map[schema.GroupVersionResource]*fleetWatchHub
	saved map[schema.GroupVersionResource]*fleet.Order // from before a restart, of resources without a hub
	until time.Time                                    // when the saved ones are dropped
}

// begin sets the first version, and reads what is on disk of an earlier daemon's versions.
func (hs *fleetWatchHubs) begin(f *fleet.Fleet, version uint64) {
	hs.ctx, hs.stop = context.WithCancel(context.Background())
	hs.fleet, hs.saved = f, f.ReadOrders()
	for _, o := range hs.saved {
		version = max(version, o.Last()+1)
	}
	hs.seq.Store(version)
}

// checkFresh returns an error if an answer that is made now is older than a version of the fleet. The daemon has
// reached every version that it has sent to clients, so there is nothing to wait for. An older state cannot be
// restored, so an exact version is always expired.
func (hs *fleetWatchHubs) checkFresh(v object.Version, exact bool) error {
	n, err := strconv.ParseUint(string(v), 10, 64)
	switch now := hs.seq.Load(); {
	case err != nil:
		return badRequest("the resource version %q is not a number", clip(string(v)))
	case exact:
		return apierrors.NewResourceExpired(fmt.Sprintf("The provided resource version is not available: %d: lists of "+
			"all clusters are always current", n))
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
	var with []*fleet.Cluster
	for _, c := range fl.Clusters() {
		if _, ok := c.Resource(gvr); ok {
			with = append(with, c)
		}
	}
	h = newFleetWatchHub(&hs.seq)
	if len(with) == 0 {
		h.close()
		return h
	}
	if hs.all == nil {
		hs.all = map[schema.GroupVersionResource]*fleetWatchHub{}
	}
	hs.all[gvr] = h
	h.order = fl.KeepOrder(gvr)
	if saved := hs.saved[gvr]; saved != nil && h.order != nil && hs.ctx.Err() == nil {
		delete(hs.saved, gvr)
		h.beginRestore(saved, gvr, with)
		hs.work.Go(func() { h.restore(hs.ctx, saved, gvr, fl) })
		return h
	}
	h.addMembers(with, gvr)
	return h
}

// addMembers follows a resource in clusters, from now on. No client has seen an object of a member that is not synced,
// so its objects are sent as additions.
func (h *fleetWatchHub) addMembers(clusters []*fleet.Cluster, gvr schema.GroupVersionResource) {
	for _, c := range clusters {
		if res, ok := c.Resource(gvr); ok {
			h.addMember(c, res, !res.Synced()) // fails only for a resource that is stopping
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.keepOrder()
}

// follow adds resources of clusters that joined, removes those of clusters that left, and closes idle hubs.
func (hs *fleetWatchHubs) follow(clusters []*fleet.Cluster, now time.Time) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.dropSaved(now)
	for gvr, h := range hs.all {
		if h.isRestoring() {
			continue
		}
		if h.idle(now) {
			h.close()
			h.dropOrder()
			delete(hs.all, gvr)
			continue
		}
		present := map[*fleet.Resource]bool{}
		for _, c := range clusters {
			if res, ok := c.Resource(gvr); ok {
				present[res] = true
			}
		}
		for _, res := range h.departed(present) {
			h.removeMember(res)
		}
		for _, c := range clusters {
			if res, ok := c.Resource(gvr); ok {
				h.addMember(c, res, true) // no client has seen its objects
			}
		}
		h.renewOrder()
	}
}

// departed returns the members that are not present any more.
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

// close ends all hubs. What is kept of them on disk stays, for the next start.
func (hs *fleetWatchHubs) close() {
	hs.stop()
	hs.work.Wait()
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for _, h := range hs.all {
		h.close()
	}
	clear(hs.all)
}
