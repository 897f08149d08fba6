package server

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/access"
	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/query"
)

// shownSets remembers what users were shown, so that a client that lists, and watches from the version of that list,
// does not miss that its rights have changed in between: its objects did not change, so no event says so.
//
// Each time a user is shown another set of a resource at /fleet, the versions of that resource are advanced, and a
// watch from an older one is 410. The versions of a cluster cannot be advanced, so a watch of a single cluster with
// filtered= is compared with what any list of its user showed last. What is not remembered counts as changed.
//
// What is remembered is bounded for each client and in total, and does not keep the sets in memory.
type shownSets struct {
	mu      sync.Mutex
	clients map[clientKey]*shownToClient
	size    int // of all clients
}

// shownToClient is what one client was shown.
type shownToClient struct {
	sets map[shownKey]shownSet
	size int
}

// shownKey identifies what a user was shown of a resource.
type shownKey struct {
	user    uint64 // the hash of its UserKey: a client may send requests as other users
	of      schema.GroupVersionResource
	cluster string // "" at /fleet
}

// shownSet is what a user was shown.
type shownSet struct {
	in    []fleet.ShownIn // sorted by cluster
	since uint64          // the version from which on it was shown, at /fleet
}

func (s shownSet) of(user uint64) fleet.RestrictedUser {
	return fleet.RestrictedUser{User: user, Since: s.since, In: s.in}
}

// size is the number of sets of clusters, and one for the memory of the rest.
func (s shownSet) size() int { return 1 + len(s.in) }

const (
	// maxShown bounds the size of what is remembered, and maxShownToClient that of one client. A set takes about 150
	// bytes.
	maxShown         = 160_000
	maxShownToClient = maxShown / 8
)

// showIn returns what a set shows of a cluster; nil means everything.
func showIn(cluster string, see *query.Visible) fleet.ShownIn {
	if see == nil {
		return fleet.ShownIn{Cluster: cluster}
	}
	return fleet.ShownIn{Cluster: cluster, Fingerprint: see.Fingerprint()}
}

// note remembers the sets that a request at /fleet shows to its user. user is a hash that is the same after a restart.
// It returns the version for an answer with these sets, at least the given one, and the version since which they are
// shown.
func (ss *shownSets) note(client clientKey, key shownKey, user uint64, in []fleet.ShownIn, hub *fleetWatchHub,
	version uint64) (shown, since uint64) {
	slices.SortFunc(in, func(a, b fleet.ShownIn) int { return cmp.Compare(a.Cluster, b.Cluster) })
	ss.mu.Lock()
	defer ss.mu.Unlock()
	was, ok := ss.last(client, key)
	if !ok {
		was, ok = hub.lastShown(user)
	}
	changed := !ok || !sameShown(was.in, in)
	was.in = mergeShown(in, was.in)
	if since := hub.noteShown(user, was.in, changed); changed {
		was.since = since
	}
	ss.put(client, key, was)
	return max(version, was.since), was.since
}

// noteIn remembers what a list shows of a cluster, or compares what a watch shows with that, and reports whether it is
// something else.
func (ss *shownSets) noteIn(client clientKey, key shownKey, see *query.Visible, watch bool) (changed bool) {
	in := []fleet.ShownIn{showIn(key.cluster, see)}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	was, ok := ss.last(client, key)
	if watch && (!ok || !sameShown(was.in, in)) {
		return true
	}
	ss.put(client, key, shownSet{in: in})
	return false
}

func (ss *shownSets) last(client clientKey, key shownKey) (was shownSet, ok bool) {
	if of := ss.clients[client]; of != nil {
		was, ok = of.sets[key]
	}
	return was, ok
}

// put remembers a set. If there are too many, it forgets others: first those of the same client, and then those of
// clients that have more than their share.
func (ss *shownSets) put(client clientKey, key shownKey, next shownSet) {
	of := ss.clients[client]
	if of == nil {
		if ss.clients == nil {
			ss.clients = map[clientKey]*shownToClient{}
		}
		of = &shownToClient{sets: map[shownKey]shownSet{}}
		ss.clients[client] = of
	}
	if was, ok := of.sets[key]; ok {
		ss.grow(of, -was.size())
	}
	of.sets[key] = next
	ss.grow(of, next.size())
	ss.shrink(client, maxShownToClient, key)
	if ss.size <= maxShown {
		return
	}
	share := maxShown / len(ss.clients)
	for other := range ss.clients { // in random order
		if ss.size <= maxShown*7/8 {
			return
		}
		ss.shrink(other, share/2, key)
	}
}

func (ss *shownSets) grow(of *shownToClient, n int) {
	of.size += n
	ss.size += n
}

// shrink forgets sets of a client, except that of a key, until their size is at most n.
func (ss *shownSets) shrink(client clientKey, n int, except shownKey) {
	of := ss.clients[client]
	for key, set := range of.sets { // in random order
		if of.size <= n {
			return
		}
		if key != except {
			ss.grow(of, -set.size())
			delete(of.sets, key)
		}
	}
	if len(of.sets) == 0 {
		delete(ss.clients, client)
	}
}

// sameShown reports whether the same was shown of the clusters that are in both lists. The hub knows of clusters that
// join and leave.
func sameShown(a, b []fleet.ShownIn) bool {
	for len(a) > 0 && len(b) > 0 {
		switch c := cmp.Compare(a[0].Cluster, b[0].Cluster); {
		case c < 0:
			a = a[1:]
		case c > 0:
			b = b[1:]
		case a[0] != b[0]:
			return false
		default:
			a, b = a[1:], b[1:]
		}
	}
	return true
}

// mergeShown returns what is shown now, and what was shown of clusters that a request left out.
func mergeShown(now, before []fleet.ShownIn) []fleet.ShownIn {
	for _, was := range before {
		at, found := slices.BinarySearchFunc(now, was, func(a, b fleet.ShownIn) int {
			return cmp.Compare(a.Cluster, b.Cluster)
		})
		if !found {
			now = slices.Insert(now, at, was)
		}
	}
	return now
}

// knows reports whether it is remembered what a user was shown.
func (ss *shownSets) knows(client clientKey, key shownKey) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	_, ok := ss.last(client, key)
	return ok
}

// sameVisible reports whether two sets are equal; nil means everything.
func sameVisible(a, b *query.Visible) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(b)
}

var shownSeed = maphash.MakeSeed()

// shownKeyOf returns the key of what a request shows of a resource, in one cluster or, if that is "", at /fleet.
func shownKeyOf(req *request, of schema.GroupVersionResource, cluster string) shownKey {
	return shownKey{maphash.String(shownSeed, access.UserKey(userOf(req.http))), of, cluster}
}

// noteShown remembers what a list or watch at /fleet shows, and sets the version of the answer. A user that sees
// everything, and always did, need not be remembered.
func (s *Server) noteShown(req *request, v *view) {
	in := make([]fleet.ShownIn, len(v.places), len(v.places)+len(v.unknownRights))
	s.each(len(v.places), func(i int) string { return v.places[i].cluster }, func(i int) {
		p := &v.places[i]
		see := p.visible
		if req.verb == "list" { // the watch that follows has another verb
			see = s.visibleToWatch(req, p)
		}
		in[i] = showIn(p.cluster, see)
	})
	for _, cluster := range v.unknownRights {
		in = append(in, showIn(cluster, unknown))
	}
	hub, user := v.moment.hub, stableUser(req)
	key := shownKeyOf(req, v.model.res.GVR(), "")
	if !slices.ContainsFunc(in, func(s fleet.ShownIn) bool { return s.Fingerprint != 0 }) &&
		!hub.wasRestricted(user) && !s.shown.knows(clientOf(req.http), key) {
		return
	}
	v.moment.version, v.moment.since = s.shown.note(clientOf(req.http), key, user, in, hub, v.moment.version)
}

// stableUser returns a hash of a request's user that is the same after a restart.
func stableUser(req *request) uint64 {
	sum := sha256.Sum256([]byte(access.UserKey(userOf(req.http))))
	return binary.LittleEndian.Uint64(sum[:])
}

// isRestricted reports whether the user may see only a part of a list or watch at /fleet.
func (v *view) isRestricted() bool {
	return len(v.unknownRights) > 0 || slices.ContainsFunc(v.places, func(p place) bool { return p.visible != nil })
}

// noteFiltered remembers what a list of one cluster shows, and reports whether a watch shows something else than the
// list that it continues.
func (s *Server) noteFiltered(req *request, at place) (changed bool) {
	begin, _ := req.initialEvents()
	return s.shown.noteIn(clientOf(req.http), shownKeyOf(req, at.res.GVR(), at.cluster), s.visibleToWatch(req, &at),
		req.verb == "watch" && !begin && !req.fromNow())
}

// visibleToWatch returns what the user of a request may watch in a place.
func (s *Server) visibleToWatch(req *request, p *place) *query.Visible {
	see, err := s.opts.Authorizer.Visible(req.context(), userOf(req.http), p.cluster, "watch", req.groupResource(),
		p.res.Info().Namespaced)
	if err != nil {
		return unknown
	}
	return see
}
