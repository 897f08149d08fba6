package server

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

// catalogs has what each cluster serves and what all of them serve. Each catalog is made when it is first asked for
// after a change of what any cluster serves, and shared by all requests until the next one.
type catalogs struct {
	fleet *fleet.Fleet

	mu      sync.Mutex
	changed <-chan struct{} // closed when the catalogs are out of date; nil before there are any
	all     *catalog
	each    map[*fleet.Cluster]*catalog
}

// forget drops catalogs that are out of date. The lock is held.
func (c *catalogs) forget() {
	if c.changed != nil {
		select {
		case <-c.changed:
		default:
			return
		}
	}
	c.changed = c.fleet.Changed() // before the clusters are read: a change in between makes new catalogs
	c.all, c.each = nil, map[*fleet.Cluster]*catalog{}
}

// ofFleet returns what all clusters serve. The caller must not change it.
func (c *catalogs) ofFleet() *catalog {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget()
	if c.all == nil {
		c.all = fleetCatalog(c.fleet.Clusters())
	}
	return c.all
}

// of returns what one cluster serves. The caller must not change it.
func (c *catalogs) of(cluster *fleet.Cluster) *catalog {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget()
	out := c.each[cluster]
	if out == nil {
		out = clusterCatalog(cluster)
		if now, ok := c.fleet.Cluster(cluster.Name()); ok && now == cluster {
			c.each[cluster] = out // one that has left is not kept in memory
		}
	}
	return out
}

// otherVersion finds in which version a cluster has a resource that it does not have in the one asked for; "" where it
// has none.
func (c *catalog) otherVersion(gvr schema.GroupVersionResource) string {
	for _, version := range c.versions[gvr.GroupResource()] {
		if version != gvr.Version {
			return version
		}
	}
	return ""
}
