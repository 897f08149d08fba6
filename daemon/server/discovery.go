package server

import (
	"net/http"
	"slices"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// isDiscovery reports whether a path is /api, /apis or something below.
func isDiscovery(path string) bool {
	first, _ := cut(path)
	return first == "api" || first == "apis"
}

// discover answers /api, /apis and the discovery paths below them. ok is false for other paths.
func (c *catalog) discover(w http.ResponseWriter, r *http.Request, path string) (ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	w.Header().Add("Vary", "Accept")
	version := aggregatedVersion(r)
	switch {
	case len(parts) == 1 && version != "":
		c.aggregated(w, version, parts[0] == "api")
	case !acceptsPlain(r):
		fail(w, r, errNotAcceptable("application/json, and of it APIGroupDiscoveryList of apidiscovery.k8s.io/v2 "+
			"and v2beta1 at /api and /apis"), nil)
	case len(parts) == 1 && parts[0] == "api":
		writeJSON(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"},
			Versions:                   c.coreVersions(),
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: r.Host}}})
	case len(parts) == 1 && parts[0] == "apis":
		writeJSON(w, http.StatusOK, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
			Groups: c.named()})
	case len(parts) == 2 && parts[0] == "apis":
		i := slices.IndexFunc(c.groups, func(g metav1.APIGroup) bool { return g.Name == parts[1] && g.Name != "" })
		if i < 0 {
			http.NotFound(w, r)
			return true
		}
		g := c.groups[i]
		g.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
		writeJSON(w, http.StatusOK, g)
	case len(parts) == 2 && parts[0] == "api", len(parts) == 3 && parts[0] == "apis":
		gv := schema.GroupVersion{Version: parts[1]}
		if parts[0] == "apis" {
			gv = schema.GroupVersion{Group: parts[1], Version: parts[2]}
		}
		list := c.resources[gv]
		if len(list) == 0 {
			http.NotFound(w, r)
			return true
		}
		kind := metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}
		if gv.Group == "" {
			kind.APIVersion = "" // an API server leaves it out, too
		}
		writeJSON(w, http.StatusOK, metav1.APIResourceList{TypeMeta: kind, GroupVersion: gv.String(), APIResources: list})
	default:
		return false
	}
	return true
}

func (c *catalog) coreVersions() []string {
	out := []string{}
	for _, g := range c.groups {
		if g.Name == "" {
			for _, v := range g.Versions {
				out = append(out, v.Version)
			}
		}
	}
	return out
}

// named returns the groups except the core group, which is at /api.
func (c *catalog) named() []metav1.APIGroup {
	out := []metav1.APIGroup{}
	for _, g := range c.groups {
		if g.Name != "" {
			out = append(out, g)
		}
	}
	return out
}

// aggregated answers with all groups and their resources at once. The documents of v2 and v2beta1 have the same fields.
func (c *catalog) aggregated(w http.ResponseWriter, version string, core bool) {
	list := apidiscovery.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList",
		APIVersion: "apidiscovery.k8s.io/" + version},
		Items: []apidiscovery.APIGroupDiscovery{}}
	for _, g := range c.groups {
		if (g.Name == "") != core {
			continue
		}
		item := apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.Name}}
		for _, v := range g.Versions {
			version := apidiscovery.APIVersionDiscovery{Version: v.Version, Freshness: apidiscovery.DiscoveryFreshnessCurrent}
			for _, r := range c.resources[schema.GroupVersion{Group: g.Name, Version: v.Version}] {
				if of, name, ok := strings.Cut(r.Name, "/"); ok {
					addSubresource(version.Resources, of, name, &r)
				} else {
					version.Resources = append(version.Resources, discovered(g.Name, v.Version, &r))
				}
			}
			item.Versions = append(item.Versions, version)
		}
		list.Items = append(list.Items, item)
	}
	writeAs(w, http.StatusOK, "application/json;g=apidiscovery.k8s.io;v="+version+";as=APIGroupDiscoveryList", list)
}

func discovered(group, version string, r *metav1.APIResource) apidiscovery.APIResourceDiscovery {
	scope := apidiscovery.ScopeCluster
	if r.Namespaced {
		scope = apidiscovery.ScopeNamespace
	}
	return apidiscovery.APIResourceDiscovery{
		Resource: r.Name, SingularResource: r.SingularName, Scope: scope, Verbs: r.Verbs, ShortNames: r.ShortNames,
		Categories:   r.Categories,
		ResponseKind: &metav1.GroupVersionKind{Group: group, Version: version, Kind: r.Kind},
	}
}

// addSubresource adds a subresource to its resource.
func addSubresource(resources []apidiscovery.APIResourceDiscovery, of, name string, r *metav1.APIResource) {
	for i := range resources {
		if resources[i].Resource == of {
			resources[i].Subresources = append(resources[i].Subresources,
				apidiscovery.APISubresourceDiscovery{Subresource: name,
					Verbs: r.Verbs, ResponseKind: &metav1.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}})
		}
	}
}
