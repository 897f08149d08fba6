package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
)

// mapping is a resource that the user named.
type mapping struct {
	gvr        schema.GroupVersionResource
	gvk        schema.GroupVersionKind
	singular   string
	namespaced bool
}

// String returns the prefix of its objects' names in the output, such as "deployment.apps".
func (m *mapping) String() string {
	if m.gvr.Group == "" {
		return m.singular
	}
	return m.singular + "." + m.gvr.Group
}

// catalog has the resources that a server serves.
type catalog struct {
	mapper meta.RESTMapperWithContext
	lists  []*metav1.APIResourceList
}

// cachedDiscovery is the discovery of a server, fetched once.
type cachedDiscovery struct {
	discovery.DiscoveryInterfaceWithContext
	groups []*metav1.APIGroup
	lists  []*metav1.APIResourceList
}

// ServerGroupsAndResourcesWithContext returns the cached discovery.
func (r *cachedDiscovery) ServerGroupsAndResourcesWithContext(context.Context) ([]*metav1.APIGroup,
	[]*metav1.APIResourceList, error) {
	return r.groups, r.lists, nil
}

// readCatalog fetches the discovery of a server. Groups that are unavailable are omitted.
func readCatalog(ctx context.Context, dc *discovery.DiscoveryClient) (*catalog, error) {
	groups, lists, err := dc.ServerGroupsAndResourcesWithContext(ctx)
	if err != nil && (groups == nil || lists == nil) {
		return nil, err
	}
	cached := &cachedDiscovery{dc, groups, lists}
	all, err := restmapper.GetAPIGroupResourcesWithContext(ctx, cached)
	if err != nil {
		return nil, err
	}
	// An ambiguous short name is resolved as by kubectl, without a warning.
	expander := restmapper.NewShortcutExpanderWithContext(restmapper.NewDiscoveryRESTMapperWithContext(all),
		cached, func(string) {})
	return &catalog{mapper: expander, lists: lists}, nil
}

// find finds a resource as kubectl does, by its plural, singular or short name, with or without a group and version.
func (c *catalog) find(ctx context.Context, name string) (*mapping, error) {
	full, gr := schema.ParseResourceArg(name)
	gvr, err := schema.GroupVersionResource{}, error(nil)
	if full != nil {
		gvr, err = c.mapper.ResourceForWithContext(ctx, *full)
	}
	if full == nil || err != nil {
		gvr, err = c.mapper.ResourceForWithContext(ctx, gr.WithVersion(""))
	}
	switch {
	case meta.IsNoMatchError(err):
		hint := ""
		if gr.Resource == "secret" || gr.Resource == "secrets" {
			hint = " (a daemon has secrets only with serve --secrets)"
		}
		return nil, fmt.Errorf("there is no resource %q here; mirador api-resources shows what there is%s", name, hint)
	case err != nil:
		return nil, fmt.Errorf("find the resource %q: %w; name its group too, as in deployments.apps", name, err)
	}
	return c.describe(gvr)
}

// findAll finds a resource, or the resources of a category such as all.
func (c *catalog) findAll(ctx context.Context, name string) ([]*mapping, error) {
	m, err := c.find(ctx, name)
	if err == nil {
		return []*mapping{m}, nil
	}
	var out []*mapping
	seen := map[schema.GroupResource]bool{}
	for _, list := range c.lists {
		gv, perr := schema.ParseGroupVersion(list.GroupVersion)
		if perr != nil {
			continue
		}
		for _, r := range list.APIResources {
			gvr := gv.WithResource(r.Name)
			if !slices.Contains(r.Categories, name) || !slices.Contains(r.Verbs, "list") || strings.Contains(r.Name, "/") ||
				seen[gvr.GroupResource()] {
				continue
			}
			seen[gvr.GroupResource()] = true
			if m, derr := c.describe(gvr); derr == nil {
				out = append(out, m)
			}
		}
	}
	if len(out) == 0 {
		return nil, err
	}
	return out, nil
}

func (c *catalog) describe(gvr schema.GroupVersionResource) (*mapping, error) {
	for _, list := range c.lists {
		if list.GroupVersion != gvr.GroupVersion().String() {
			continue
		}
		i := slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == gvr.Resource })
		if i < 0 {
			continue
		}
		r := &list.APIResources[i]
		m := &mapping{gvr: gvr, gvk: gvr.GroupVersion().WithKind(r.Kind), singular: r.SingularName, namespaced: r.Namespaced}
		if m.singular == "" {
			m.singular = strings.ToLower(r.Kind)
		}
		return m, nil
	}
	return nil, fmt.Errorf("the server does not describe %s; try again, it may have changed just now",
		gvr.GroupResource())
}

// forKind returns the resource of a kind.
func (c *catalog) forKind(ctx context.Context, gvk schema.GroupVersionKind) (*mapping, error) {
	m, err := c.mapper.RESTMappingWithContext(ctx, gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	return c.describe(m.Resource)
}
