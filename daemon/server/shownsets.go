package server

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/access"
	"github.com/mirador-k8s/mirador/daemon/query"
)

// shownSets remembers what users were shown at /fleet, so that a client that lists, and watches from the version of
// that list, does not miss that its rights have changed in between: its objects did not change, so no event says so.
//
// Each time a user is shown another set of a resource, the versions of that resource are advanced, and a watch from an
// older one is 410. What is not remembered, because it was too long ago, counts as changed.
type shownSets struct {
	mu   sync.Mutex
	last map[shownKey]shownSet

	// lastIn has what users were last shown of single clusters, with filtered=. The versions of a cluster cannot be
	// advanced, so a watch is compared with what any list of its user showed last.
	lastIn map[shownInKey]*query.Visible
}

type shownKey struct {
	user string
	of   schema.GroupVersionResource
}

type shownInKey struct {
	shownKey
	cluster string
}

// noteIn remembers what a list shows of a cluster, or compares what a watch shows with that, and reports whether it is
// something else.
func (ss *shownSets) noteIn(key shownInKey, see *query.Visible, watch bool) (changed bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	was, ok := ss.lastIn[key]
	changed = watch && (!ok || !sameVisible(was, see))
	if changed {
		return true
	}
	if ss.lastIn == nil {
		ss.lastIn = map[shownInKey]*query.Visible{}
	}
	ss.lastIn[key] = see
	for other := range ss.lastIn { // in random order
		if len(ss.lastIn) <= maxShown {
			break
		}
		if other != key {
			delete(ss.lastIn, other)
		}
	}
	return false
}

type shownSet struct {
	visible map[string]*query.Visible // by cluster
	since   uint64                    // the version from which on it was shown
}

// maxShown is how many sets are remembered.
const maxShown = 10_000

// note remembers the sets that a request shows to its user. It returns the version for an answer with these sets, and
// the version since which they are shown.
func (ss *shownSets) note(key shownKey, visible map[string]*query.Visible,
	hub *fleetWatchHub) (version, since uint64) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	was, ok := ss.last[key]
	if !ok || !sameSets(was.visible, visible) {
		was = shownSet{since: hub.advance()}
	}
	was.visible = visible
	if ss.last == nil {
		ss.last = map[shownKey]shownSet{}
	}
	ss.last[key] = was
	for other := range ss.last { // in random order
		if len(ss.last) <= maxShown {
			break
		}
		if other != key {
			delete(ss.last, other)
		}
	}
	return hub.now(), was.since
}

// sameSets reports whether the same is visible in the clusters that are in both maps. The hub knows of clusters that
// join and leave.
func sameSets(a, b map[string]*query.Visible) bool {
	for cluster, before := range a {
		if now, ok := b[cluster]; ok && !sameVisible(before, now) {
			return false
		}
	}
	return true
}

// sameVisible reports whether two sets are equal; nil means everything.
func sameVisible(a, b *query.Visible) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(b)
}

// noteShown remembers what a list or watch at /fleet shows, and sets the version of the answer. A user that sees
// everything, whatever the rights, need not be remembered.
func (s *Server) noteShown(req *request, v *view) {
	sets := map[string]*query.Visible{}
	restricted := len(v.unknownRights) > 0
	var mu sync.Mutex
	s.each(len(v.places), func(i int) string { return v.places[i].cluster }, func(i int) {
		p := &v.places[i]
		see := p.visible
		if req.verb == "list" { // the watch that follows has another verb
			var err error
			if see, err = s.opts.Authorizer.Visible(req.context(), userOf(req.http), p.cluster, "watch", req.groupResource(),
				p.res.Info().Namespaced); err != nil {
				see = unknown
			}
		}
		mu.Lock()
		defer mu.Unlock()
		sets[p.cluster] = see
		restricted = restricted || see != nil
	})
	if !restricted {
		return
	}
	for _, cluster := range v.unknownRights {
		sets[cluster] = unknown
	}
	key := shownKey{access.UserKey(userOf(req.http)), req.gvr()}
	v.moment.version, v.moment.since = s.shown.note(key, maps.Clone(sets), v.moment.hub)
}

// noteFiltered remembers what a list of one cluster shows, and reports whether a watch shows something else than the
// list that it continues.
func (s *Server) noteFiltered(req *request, at place) (changed bool) {
	see, err := s.opts.Authorizer.Visible(req.context(), userOf(req.http), at.cluster, "watch", req.groupResource(),
		at.res.Info().Namespaced)
	if err != nil {
		see = unknown
	}
	key := shownInKey{shownKey{access.UserKey(userOf(req.http)), req.gvr()}, at.cluster}
	begin, _ := req.initialEvents()
	return s.shown.noteIn(key, see, req.verb == "watch" && !begin && !req.fromNow())
}
