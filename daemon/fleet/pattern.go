package fleet

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// resourceFilter decides which resources are mirrored.
type resourceFilter struct {
	include, exclude []pattern
	secrets          bool
}

// onRequest are resources that are mirrored only if a pattern of Include selects them. They change all the time, and
// few clients read them: leases are renewed every few seconds, and events.k8s.io has the core group's events again.
var onRequest = map[schema.GroupResource]bool{
	{Group: "coordination.k8s.io", Resource: "leases"}: true,
	{Group: "events.k8s.io", Resource: "events"}:       true,
}

// pattern is a parsed pattern.
type pattern struct {
	resource, group string
	anyGroup        bool
}

func newResourceFilter(include, exclude []string, secrets bool) (*resourceFilter, error) {
	c := &resourceFilter{secrets: secrets}
	for _, side := range []struct {
		name string
		from []string
		to   *[]pattern
	}{{"Include", include, &c.include}, {"Exclude", exclude, &c.exclude}} {
		for _, text := range side.from {
			p, err := parsePattern(text)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", side.name, err)
			}
			*side.to = append(*side.to, p)
		}
	}
	return c, nil
}

func parsePattern(text string) (pattern, error) {
	const allowed = "abcdefghijklmnopqrstuvwxyz0123456789-.*"
	resource, group, dotted := strings.Cut(text, ".")
	if resource == "" || strings.Trim(text, allowed) != "" {
		return pattern{}, fmt.Errorf("%q is not a pattern of resources; write it as pods, deployments.apps, "+
			"*.example.com or *", text)
	}
	return pattern{resource: resource, group: group, anyGroup: !dotted}, nil
}

func (p pattern) matches(r schema.GroupResource) bool {
	// A pattern has no special characters of path.Match except stars, so it cannot be malformed.
	if ok, _ := path.Match(p.resource, r.Resource); !ok {
		return false
	}
	ok, _ := path.Match(p.group, r.Group)
	return ok || p.anyGroup
}

// includes reports whether a resource is mirrored.
func (c *resourceFilter) includes(r schema.GroupResource) bool {
	if r.Group == "" && r.Resource == "secrets" && !c.secrets {
		return false
	}
	included := anyMatches(c.include, r)
	if len(c.include) == 0 {
		included = !onRequest[r]
	}
	return included && !anyMatches(c.exclude, r)
}

// UnusedIncludes returns the patterns of Options.Include that match no resource that is mirrored.
func (f *Fleet) UnusedIncludes() (unused []string) {
	clusters := f.Clusters()
	for i, p := range f.filter.include {
		if !slices.ContainsFunc(clusters, func(c *Cluster) bool { return anyResourceMatches(c, p) }) {
			unused = append(unused, f.opts.Include[i])
		}
	}
	return unused
}

func anyResourceMatches(c *Cluster, p pattern) bool {
	return slices.ContainsFunc(c.Resources(), func(r *Resource) bool { return p.matches(r.gvr.GroupResource()) })
}

func anyMatches(patterns []pattern, r schema.GroupResource) bool {
	for _, p := range patterns {
		if p.matches(r) {
			return true
		}
	}
	return false
}
