package access

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

// rbacKinds are the resources that RBAC consists of.
var rbacKinds = []struct {
	resource, kind string
	decode         func([]byte) (any, error)
}{
	{"roles", "Role", decodeAs[rbacv1.Role]},
	{"clusterroles", "ClusterRole", decodeAs[rbacv1.ClusterRole]},
	{"rolebindings", "RoleBinding", decodeAs[rbacv1.RoleBinding]},
	{"clusterrolebindings", "ClusterRoleBinding", decodeAs[rbacv1.ClusterRoleBinding]},
}

func decodeAs[T any](b []byte) (any, error) {
	out := new(T)
	return out, json.Unmarshal(b, out)
}

// member follows the roles and bindings of one cluster. If one of its resources is mirrored anew, it is replaced.
type member struct {
	cluster   *fleet.Cluster
	resources [4]*fleet.Resource // of rbacKinds; nil: not mirrored
	rbac      *RBAC
	subs      [4]fleet.Subscription

	// A member that replaces another of the same cluster takes these over.
	reviews  *reviews
	detector *detector
}

// rbacResource returns the resource of one of rbacKinds.
func rbacResource(i int) schema.GroupVersionResource {
	return rbacv1.SchemeGroupVersion.WithResource(rbacKinds[i].resource)
}

// resourcesOf returns the mirrored roles and bindings of a cluster.
func resourcesOf(c *fleet.Cluster) (out [4]*fleet.Resource) {
	for i := range rbacKinds {
		out[i], _ = c.Resource(rbacResource(i))
	}
	return out
}

// follow begins to follow the roles and bindings of a cluster. last is the member that it replaces, or nil.
func (a *Access) follow(c *fleet.Cluster, last *member) *member {
	m := &member{cluster: c, resources: resourcesOf(c), rbac: NewRBAC()}
	if last != nil && last.cluster == c {
		m.reviews, m.detector = last.reviews, last.detector
	} else {
		m.reviews = newReviews(c, a.signal)
		m.detector = &detector{cluster: c.Name(), review: c.ReviewOwnRules, log: a.log, signal: a.signal}
	}
	for i, res := range m.resources {
		if res == nil {
			continue
		}
		k := rbacKinds[i]
		sub, err := res.Subscribe(func(e *fleet.Event) { m.apply(a, k.kind, k.decode, e) }, nil)
		if err != nil {
			m.resources[i] = nil // it is stopping and will be replaced
			continue
		}
		m.subs[i] = sub
	}
	return m
}

// apply puts one role or binding into the RBAC. One that cannot be decoded grants nothing.
func (m *member) apply(a *Access, kind string, decode func([]byte) (any, error), e *fleet.Event) {
	defer a.signal()
	if e.New == nil {
		m.rbac.Delete(kind, e.Key)
		return
	}
	obj, err := decode(fleet.Bytes(e.New, nil))
	if err == nil {
		err = m.rbac.Put(obj)
	}
	if err != nil {
		m.rbac.Delete(kind, e.Key)
		a.log.Warn("a role or binding cannot be read, and grants nothing", "cluster", m.cluster.Name(), "kind", kind,
			"key", e.Key, "error", err)
	}
}

// signal tells Run that a right may have changed.
func (a *Access) signal() {
	select {
	case a.applied <- struct{}{}:
	default: // it is going to look anyway
	}
}

// rights returns what decides about the cluster, or an error while its roles and bindings are not known.
func (m *member) rights() (rights, error) {
	for i, res := range m.resources {
		switch {
		case res == nil:
			return nil, fmt.Errorf("the %s of cluster %q are not mirrored, so nobody's rights in it are known; include them, "+
				"and let the daemon's user list them", rbacKinds[i].resource, m.cluster.Name())
		case !res.Synced() || !m.subs[i].HasSynced():
			return nil, fmt.Errorf("the %s of cluster %q have not been read yet", rbacKinds[i].resource, m.cluster.Name())
		}
	}
	return localRights{m.rbac, true}, nil
}

// WaitRestored waits, at the start, until the roles and bindings that the disk has of a cluster count. It does not wait
// for those that the cluster has to send, nor if something else decides about the cluster.
func (a *Access) WaitRestored(ctx context.Context, c *fleet.Cluster) {
	kinds := make([]schema.GroupVersionResource, len(rbacKinds))
	for i := range rbacKinds {
		kinds[i] = rbacResource(i)
	}
	if !c.WaitRestored(ctx, kinds...) {
		return
	}
	for {
		changed := a.Changed()
		if mode := a.Mode(c.Name()); mode != "" && (mode != ModeRBAC || a.applies(c)) {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// applies reports whether the present roles and bindings of a cluster count, or are about to be read anew.
func (a *Access) applies(c *fleet.Cluster) bool {
	m := a.member(c.Name())
	for i, res := range resourcesOf(c) {
		if res == nil || !res.Synced() {
			return true
		}
		if m == nil || m.resources[i] != res || !m.subs[i].HasSynced() {
			return false
		}
	}
	return true
}

// close ends the member. next is the one that replaces it, or nil.
func (m *member) close(next *member) {
	for _, sub := range m.subs {
		if sub != nil {
			sub.Remove()
		}
	}
	if next == nil || next.reviews != m.reviews {
		m.detector.close()
		m.reviews.close()
	}
}

const (
	// syncEvery is how often Run looks whether the roles and bindings of a cluster have been read.
	syncEvery = 100 * time.Millisecond
	// settle is how long Run waits after a change, so that many changes are announced at once.
	settle = 50 * time.Millisecond
)

// Run follows the clusters of the fleet until ctx ends.
func (a *Access) Run(ctx context.Context) error {
	defer a.closeMembers()
	known := map[*member]knownRights{}
	for {
		changed := a.fleet.Changed()
		a.followClusters()
		notify, unread := a.rightsChanged(known)
		if notify {
			a.notify()
		}
		var again <-chan time.Time
		if unread {
			again = time.After(syncEvery)
		}
		select {
		case <-a.applied:
			again = time.After(settle)
		case <-changed:
			continue
		case <-again:
			continue
		case <-ctx.Done():
			return nil
		}
		select {
		case <-again:
		case <-ctx.Done():
			return nil
		}
	}
}

// knownRights is what Run has seen of a member.
type knownRights struct {
	version, reviews uint64
	mode             Mode
	ready            bool
}

// rightsChanged reports whether the rights in any cluster have changed since the last call, and whether some are not
// known yet. It asks clusters how they authorize requests.
func (a *Access) rightsChanged(known map[*member]knownRights) (changed, unread bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	p := a.policy.Load()
	present := make(map[*member]bool, len(a.members))
	for name, m := range a.members {
		if first, _ := m.cluster.Discovered(); p.detects(name) && !first.IsZero() {
			m.detector.start(m.cluster.ConfigNumber())
		}
		_, err := m.rights()
		now := knownRights{m.rbac.Version(), m.reviews.version(), a.modeOf(p, name, m), err == nil}
		if was, ok := known[m]; !ok || was != now {
			known[m], changed = now, true
		}
		unread = unread || now.mode == "" || now.mode == ModeRBAC && err != nil
		present[m] = true
	}
	for m := range known {
		if !present[m] {
			delete(known, m)
			changed = true
		}
	}
	return changed, unread
}

// followClusters makes members of clusters that joined or whose resources were replaced, and ends those that left.
// Only Run calls it.
func (a *Access) followClusters() {
	next := map[string]*member{}
	a.mu.RLock()
	last := a.members
	a.mu.RUnlock()
	for _, c := range a.fleet.Clusters() {
		m := last[c.Name()]
		if m == nil || m.cluster != c || resourcesOf(c) != m.resources {
			m = a.follow(c, m)
		}
		next[c.Name()] = m
	}
	a.mu.Lock()
	a.members = next
	a.mu.Unlock()
	for name, m := range last {
		if next[name] != m {
			m.close(next[name])
		}
		if next[name] == nil {
			a.cache.forget(name)
		}
	}
}

func (a *Access) closeMembers() {
	a.mu.Lock()
	members := a.members
	a.members = nil
	a.mu.Unlock()
	for _, m := range members {
		m.close(nil)
	}
}
