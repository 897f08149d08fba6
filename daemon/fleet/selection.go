package fleet

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// maxResources bounds the mirrored resources of a cluster, because each needs a watch.
const maxResources = 2000

// selection has the resources of a cluster that will be mirrored. It never changes.
type selection struct {
	groups []metav1.APIGroup // with a resource in infos
	infos  []metav1.APIResource
	// all are the resources that can be mirrored, including those that the filter excludes.
	all map[schema.GroupVersionResource]metav1.APIResource
	// faults are the reasons for what was left out because it is invalid or unknown.
	faults []error
}

// selectFrom selects the resources that can be listed and watched and that want includes: each
// in its group's preferred version, or else in the first version that has it. A group version
// that cannot be discovered now keeps the resources that it had before.
func selectFrom(groups []group, before map[schema.GroupVersionResource]metav1.APIResource,
	want *resourceFilter) *selection {
	o := &selection{all: map[schema.GroupVersionResource]metav1.APIResource{}}
	seen := map[schema.GroupResource]bool{}
	for _, g := range groups {
		out := metav1.APIGroup{Name: g.name}
		for _, v := range g.versions {
			if err := checkNames(g.name, v.name); err != nil {
				o.faults = append(o.faults, err)
				continue
			}
			resources := v.resources
			if v.err != nil {
				o.faults = append(o.faults, fmt.Errorf("ask what is served in %s; what was known of it stays: %w",
					schema.GroupVersion{Group: g.name, Version: v.name}, v.err))
				resources = known(before, g.name, v.name)
			}
			if o.take(resources, g.name, v.name, seen, want) {
				gv := metav1.GroupVersionForDiscovery{GroupVersion: schema.GroupVersion{Group: g.name, Version: v.name}.String(),
					Version: v.name}
				out.Versions = append(out.Versions, gv)
			}
		}
		if len(out.Versions) > 0 {
			out.PreferredVersion = out.Versions[0]
			o.groups = append(o.groups, out)
		}
	}
	slices.SortFunc(o.infos, compareInfos)
	return o
}

// selectFrom selects the resources that are mirrored. Clusters that serve the same share the result.
func (c *Cluster) selectFrom(answered *answeredGroups) *selection {
	if answered.content == (contentHash{}) || slices.ContainsFunc(answered.groups, group.isPartlyUnknown) {
		return selectFrom(answered.groups, c.served, c.fleet.filter)
	}
	shared, _ := c.fleet.opts.equal.selections.of(answered.content, func() (*selection, error) {
		return selectFrom(answered.groups, nil, c.fleet.filter), nil
	})
	return shared
}

// isPartlyUnknown reports whether the resources of one of the group's versions are unknown.
func (g group) isPartlyUnknown() bool {
	return slices.ContainsFunc(g.versions, func(v groupVersion) bool { return v.err != nil })
}

// known returns the previous resources of a group version.
func known(before map[schema.GroupVersionResource]metav1.APIResource, group,
	version string) (out []metav1.APIResource) {
	for gvr, info := range before {
		if gvr.Group == group && gvr.Version == version {
			out = append(out, info)
		}
	}
	slices.SortFunc(out, compareInfos)
	return out
}

// take adds the resources of one version, and reports whether one of them is selected.
func (o *selection) take(resources []metav1.APIResource, group, version string, seen map[schema.GroupResource]bool,
	want *resourceFilter) (wanted bool) {
	for _, r := range resources {
		if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "watch") {
			continue
		}
		gvr := schema.GroupVersionResource{Group: group, Version: version, Resource: r.Name}
		if err := checkResource(r); err != nil {
			o.faults = append(o.faults, err)
			continue
		}
		if seen[gvr.GroupResource()] {
			continue
		}
		seen[gvr.GroupResource()] = true
		r.Group, r.Version, r.Verbs = group, version, metav1.Verbs{"get", "list", "watch"}
		r.StorageVersionHash = ""
		o.all[gvr] = r
		if !want.includes(gvr.GroupResource()) {
			continue
		}
		if len(o.infos) == maxResources {
			o.faults = append(o.faults,
				fmt.Errorf("mirror %s: the cluster has more than the %d resources that are mirrored of one; exclude some",
					gvr.GroupResource(), maxResources))
			continue
		}
		o.infos = append(o.infos, r)
		wanted = true
	}
	return wanted
}

func compareInfos(a, b metav1.APIResource) int {
	if c := strings.Compare(a.Group, b.Group); c != 0 {
		return c
	}
	if c := strings.Compare(a.Version, b.Version); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

func gvrOf(r *metav1.APIResource) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Name}
}

var kindName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,62}$`)

// checkNames refuses names that are not valid in a path. Names come from the server and are
// used in requests, logs and metrics.
func checkNames(group, version string) error {
	if group != "" && len(validation.IsDNS1123Subdomain(group)) > 0 || len(validation.IsDNS1123Label(version)) > 0 {
		return fmt.Errorf("the server lists the group version %.80q, which is not a valid name; it is left out",
			group+"/"+version)
	}
	return nil
}

func checkResource(r metav1.APIResource) error {
	if len(validation.IsDNS1123Subdomain(r.Name)) > 0 || !kindName.MatchString(r.Kind) {
		return fmt.Errorf("the server lists the resource %.80q of kind %.80q, which are not valid names; it is left out",
			r.Name, r.Kind)
	}
	for _, n := range slices.Concat([]string{r.SingularName}, r.ShortNames, r.Categories) {
		if n != "" && len(validation.IsDNS1123Label(n)) > 0 {
			return fmt.Errorf("the server lists the resource %q with the name %.80q, which is not valid; it is left out",
				r.Name, n)
		}
	}
	return nil
}
