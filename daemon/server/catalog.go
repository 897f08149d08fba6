package server

import (
	"cmp"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

// catalogs has the catalog of each cluster, and those of the sets of clusters that users may see. A catalog is made by
// the first request after the resources of any cluster have changed, and shared by all requests until the next change.
type catalogs struct {
	fleet *fleet.Fleet

	mu      sync.Mutex
	changed <-chan struct{} // closed when the catalogs are out of date; nil before there are any
	each    map[*fleet.Cluster]*catalog
	unions  []catalogUnion
}

// catalogUnion is the catalog of several clusters.
type catalogUnion struct {
	clusters []*fleet.Cluster
	catalog  *catalog
}

// maxUnions is how many catalogs of several clusters are kept. Most users may see the same clusters.
const maxUnions = 64

// forget drops catalogs that are out of date. The lock is held.
func (c *catalogs) forget() {
	if c.changed != nil {
		select {
		case <-c.changed:
		default:
			return
		}
	}
	c.changed = c.fleet.Changed() // before the clusters are read, so that a change in between is noticed
	c.unions, c.each = nil, map[*fleet.Cluster]*catalog{}
}

// ofAll returns the catalog of several clusters. The caller must not change it.
func (c *catalogs) ofAll(clusters []*fleet.Cluster) *catalog {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget()
	for _, u := range c.unions {
		if slices.Equal(u.clusters, clusters) {
			return u.catalog
		}
	}
	made := catalogUnion{slices.Clone(clusters), fleetCatalog(clusters)}
	if len(c.unions) == maxUnions {
		c.unions = slices.Delete(c.unions, 0, 1)
	}
	c.unions = append(c.unions, made)
	return made.catalog
}

// of returns the catalog of one cluster. The caller must not change it.
func (c *catalogs) of(cluster *fleet.Cluster) *catalog {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget()
	out := c.each[cluster]
	if out == nil {
		out = clusterCatalog(cluster)
		if now, ok := c.fleet.Cluster(cluster.Name()); ok && now == cluster {
			c.each[cluster] = out // the catalog of a cluster that has left is not kept
		}
	}
	return out
}

// otherVersion returns a version other than gvr's in which the resource is mirrored, "" if there is none.
func (c *catalog) otherVersion(gvr schema.GroupVersionResource) string {
	for _, version := range c.versions[gvr.GroupResource()] {
		if version != gvr.Version {
			return version
		}
	}
	return ""
}

// catalog lists the resources of one cluster, or of several.
type catalog struct {
	groups    []metav1.APIGroup
	resources map[schema.GroupVersion][]metav1.APIResource

	// The versions of each mirrored resource, and whether objects of a kind have a namespace.
	versions   map[schema.GroupResource][]string
	namespaced map[schema.GroupKind]bool
}

func newCatalog() *catalog {
	return &catalog{resources: map[schema.GroupVersion][]metav1.APIResource{},
		versions:   map[schema.GroupResource][]string{},
		namespaced: map[schema.GroupKind]bool{}}
}

func clusterCatalog(c *fleet.Cluster) *catalog {
	out := newCatalog()
	out.groups = c.Groups()
	for _, r := range c.Resources() {
		out.add(r)
	}
	out.addReviewKinds()
	return out
}

// fleetCatalog returns a catalog with each group and resource of the clusters once. If clusters prefer different
// versions of a group, that of the first cluster comes first.
func fleetCatalog(clusters []*fleet.Cluster) *catalog {
	out := newCatalog()
	for _, c := range clusters {
		for _, g := range c.Groups() {
			i := slices.IndexFunc(out.groups, func(have metav1.APIGroup) bool { return have.Name == g.Name })
			if i < 0 {
				g.Versions = slices.Clone(g.Versions)
				out.groups = append(out.groups, g)
				continue
			}
			for _, v := range g.Versions {
				if !slices.Contains(out.groups[i].Versions, v) {
					out.groups[i].Versions = append(out.groups[i].Versions, v)
				}
			}
		}
		for _, r := range c.Resources() {
			out.add(r)
		}
	}
	out.addReviewKinds()
	slices.SortFunc(out.groups, func(a, b metav1.APIGroup) int { return cmp.Compare(a.Name, b.Name) })
	for _, list := range out.resources {
		slices.SortFunc(list, func(a, b metav1.APIResource) int { return cmp.Compare(a.Name, b.Name) })
	}
	return out
}

// add adds a resource unless it is there already.
func (c *catalog) add(r *fleet.Resource) {
	gv, gr := r.GVR().GroupVersion(), r.GVR().GroupResource()
	if slices.Contains(c.versions[gr], gv.Version) {
		return
	}
	c.versions[gr] = append(c.versions[gr], gv.Version)
	info := r.Info()
	if gk := r.GVK().GroupKind(); !c.namespaced[gk] {
		c.namespaced[gk] = info.Namespaced
	}
	info.Group, info.Version = "", "" // they are in the list that contains it
	c.resources[gv] = append(c.resources[gv], info)
	if scalable[r.GVR().GroupResource()] {
		c.resources[gv] = append(c.resources[gv], metav1.APIResource{Name: info.Name + "/scale", Namespaced: true,
			Group: "autoscaling", Version: "v1", Kind: "Scale", Verbs: metav1.Verbs{"get"}})
	}
}

// addReviewKinds adds the reviews that the server itself answers, unless no cluster is discovered yet.
func (c *catalog) addReviewKinds() {
	if len(c.groups) == 0 {
		return
	}
	for _, info := range reviewKinds {
		gv := schema.GroupVersion{Group: info.Group, Version: info.Version}
		version := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
		i := slices.IndexFunc(c.groups, func(g metav1.APIGroup) bool { return g.Name == gv.Group })
		if i < 0 {
			i = len(c.groups)
			c.groups = append(c.groups, metav1.APIGroup{Name: gv.Group, PreferredVersion: version})
		}
		if !slices.Contains(c.groups[i].Versions, version) {
			c.groups[i].Versions = append(c.groups[i].Versions, version)
		}
		info.Group, info.Version = "", ""
		c.resources[gv] = append(c.resources[gv], info)
	}
}

// isNamespaced reports whether a resource has namespaces, in whatever version it is served.
func (c *catalog) isNamespaced(gr schema.GroupResource) bool {
	for _, version := range c.versions[gr] {
		for _, info := range c.resources[gr.WithVersion(version).GroupVersion()] {
			if info.Name == gr.Resource {
				return info.Namespaced
			}
		}
	}
	return false
}

// mayServe reports whether the catalog has a resource, or is empty because the cluster is not discovered yet.
func (c *catalog) mayServe(group, resource string) bool {
	if len(c.versions) == 0 {
		return true
	}
	if group != "*" && resource != "*" {
		return len(c.versions[schema.GroupResource{Group: group, Resource: resource}]) > 0
	}
	for gr := range c.versions {
		if (resource == "*" || resource == gr.Resource) && (group == "*" || group == gr.Group) {
			return true
		}
	}
	return false
}
