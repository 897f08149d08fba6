package informertest

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// serveDiscovery answers requests that name no resource: the groups, their versions and resources, the server's
// version and its health.
func (s *Server) serveDiscovery(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		http.NotFound(w, r)
		return
	}
	served := s.served()
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case slices.Contains([]string{"healthz", "livez", "readyz"}, parts[0]):
		w.Write([]byte("ok"))
	case r.URL.Path == "/version":
		writeJSON(w, mediaJSON, version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.2",
			Platform: "linux/amd64", Compiler: "gc"})
	case len(parts) == 1 && (parts[0] == "api" || parts[0] == "apis"):
		s.serveGroups(w, r, served, parts[0] == "api")
	case len(parts) == 2 && parts[0] == "api":
		serveResources(w, r, served, schema.GroupVersion{Version: parts[1]})
	case len(parts) == 2 && parts[0] == "apis":
		for _, g := range groups(served) {
			if g.Name == parts[1] && g.Name != "" {
				g.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroup"}
				writeJSON(w, mediaJSON, g)
				return
			}
		}
		http.NotFound(w, r)
	case len(parts) == 3 && parts[0] == "apis":
		serveResources(w, r, served, schema.GroupVersion{Group: parts[1], Version: parts[2]})
	default:
		http.NotFound(w, r)
	}
}

// served returns the resources in a fixed order.
func (s *Server) served() []*resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.resources), func(a, b *resource) int {
		return cmp.Or(cmp.Compare(a.gvr.Group, b.gvr.Group), cmp.Compare(a.gvr.Version, b.gvr.Version),
			cmp.Compare(a.gvr.Resource, b.gvr.Resource))
	})
}

const (
	aggregatedV2   = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	aggregatedKind = "APIGroupDiscoveryList"
)

func (s *Server) serveGroups(w http.ResponseWriter, r *http.Request, served []*resource, core bool) {
	for _, c := range accepted(r) {
		if c.mediaType == mediaJSON && c.params["as"] == aggregatedKind && c.params["g"] == "apidiscovery.k8s.io" &&
			c.params["v"] == "v2" {
			writeJSON(w, aggregatedV2, aggregate(served, core))
			return
		}
		if c.params["as"] == "" && c.json() {
			break
		}
	}
	if core {
		writeJSON(w, mediaJSON, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{}})
		return
	}
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"},
		Groups: []metav1.APIGroup{}}
	for _, g := range groups(served) {
		if g.Name != "" {
			list.Groups = append(list.Groups, g)
		}
	}
	writeJSON(w, mediaJSON, list)
}

// groups returns every group with its versions; the first version is the preferred one.
func groups(served []*resource) []metav1.APIGroup {
	var out []metav1.APIGroup
	for _, r := range served {
		gv := metav1.GroupVersionForDiscovery{GroupVersion: r.gvr.GroupVersion().String(), Version: r.gvr.Version}
		if n := len(out); n == 0 || out[n-1].Name != r.gvr.Group {
			out = append(out, metav1.APIGroup{Name: r.gvr.Group, PreferredVersion: gv})
		}
		g := &out[len(out)-1]
		if !slices.Contains(g.Versions, gv) {
			g.Versions = append(g.Versions, gv)
		}
	}
	return out
}

func serveResources(w http.ResponseWriter, r *http.Request, served []*resource, gv schema.GroupVersion) {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
		GroupVersion: gv.String()}
	for _, res := range served {
		if res.gvr.GroupVersion() == gv {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: res.gvr.Resource, SingularName: strings.ToLower(res.kind), Namespaced: res.namespaced,
				Kind: res.kind, Verbs: verbs,
			})
		}
	}
	if list.APIResources == nil {
		http.NotFound(w, r)
		return
	}
	writeJSON(w, mediaJSON, list)
}

// aggregate returns all groups with all their resources in one document.
func aggregate(served []*resource, core bool) apidiscovery.APIGroupDiscoveryList {
	out := apidiscovery.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{APIVersion: "apidiscovery.k8s.io/v2", Kind: aggregatedKind},
		Items:    []apidiscovery.APIGroupDiscovery{},
	}
	for _, r := range served {
		if core != (r.gvr.Group == "") {
			continue
		}
		if n := len(out.Items); n == 0 || out.Items[n-1].Name != r.gvr.Group {
			out.Items = append(out.Items, apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: r.gvr.Group}})
		}
		g := &out.Items[len(out.Items)-1]
		if n := len(g.Versions); n == 0 || g.Versions[n-1].Version != r.gvr.Version {
			g.Versions = append(g.Versions,
				apidiscovery.APIVersionDiscovery{Version: r.gvr.Version, Freshness: apidiscovery.DiscoveryFreshnessCurrent})
		}
		v := &g.Versions[len(g.Versions)-1]
		scope := apidiscovery.ScopeCluster
		if r.namespaced {
			scope = apidiscovery.ScopeNamespace
		}
		v.Resources = append(v.Resources, apidiscovery.APIResourceDiscovery{
			Resource: r.gvr.Resource, SingularResource: strings.ToLower(r.kind), Scope: scope, Verbs: verbs,
			ResponseKind: &metav1.GroupVersionKind{Group: r.gvr.Group, Version: r.gvr.Version, Kind: r.kind},
		})
	}
	return out
}

func writeJSON(w http.ResponseWriter, mediaType string, v any) {
	w.Header().Set("Content-Type", mediaType)
	json.NewEncoder(w).Encode(v)
}
