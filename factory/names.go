package factory

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// namespaced reports whether a resource is namespaced, according to discovery or, for resources of Kubernetes itself,
// to the table of this package.
func (f *Factory) namespaced(gvr schema.GroupVersionResource) (namespaced, known bool) {
	f.mu.Lock()
	r, ok := f.served[gvr]
	f.mu.Unlock()
	if ok {
		return r.Namespaced, true
	}
	if slices.Contains(clusterScoped[gvr.Group], gvr.Resource) {
		return false, true
	}
	_, ok = kindOf(scheme.Scheme, gvr)
	return true, ok
}

// kindOf returns the kind of a resource in a scheme.
func kindOf(s *runtime.Scheme, gvr schema.GroupVersionResource) (schema.GroupVersionKind, bool) {
	for kind := range objectKinds(s, gvr.GroupVersion()) {
		gvk := gvr.GroupVersion().WithKind(kind)
		if plural, _ := meta.UnsafeGuessKindToResource(gvk); plural == gvr {
			return gvk, true
		}
	}
	return schema.GroupVersionKind{}, false
}

// objectKinds yields the kinds of a group version that can be listed: those with a list type. A scheme also has options
// and reviews, which cannot be listed.
func objectKinds(s *runtime.Scheme, gv schema.GroupVersion) func(yield func(kind string) bool) {
	known := s.KnownTypes(gv)
	return func(yield func(kind string) bool) {
		for kind := range known {
			if _, ok := known[kind+"List"]; ok && !yield(kind) {
				return
			}
		}
	}
}

// checkName rejects names that are certainly wrong, without a request: the group version is in the scheme, the resource
// is not, and its name is similar to one that is. Any other name may be served, now or later.
func (f *Factory) checkName(gvr schema.GroupVersionResource) error {
	f.mu.Lock()
	_, served := f.served[gvr]
	f.mu.Unlock()
	if served || !f.set.Scheme.IsVersionRegistered(gvr.GroupVersion()) {
		return nil
	}
	if _, ok := kindOf(f.set.Scheme, gvr); ok {
		return nil
	}
	near := f.similarNames(gvr)
	if len(near) == 0 {
		return nil
	}
	return fmt.Errorf("open %s: there is no such resource in %s%s", fullName(gvr), gvr.GroupVersion(), didYouMean(near))
}

func didYouMean(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(names, " or ") + "?"
}

// similarNames returns up to three known resources with a similar name: the kind was given instead of the resource, the
// name has a typo, or it exists in another group or version. Of the scheme, only stable versions are searched.
func (f *Factory) similarNames(gvr schema.GroupVersionResource) []string {
	const most = 3
	asked := strings.ToLower(gvr.Resource)
	var near []string
	consider := func(r schema.GroupVersionResource, kind string) {
		if r != gvr && (r.Resource == asked || strings.ToLower(kind) == asked ||
			r.Group == gvr.Group && typo(r.Resource, asked)) {
			near = append(near, fullName(r))
		}
	}
	for _, gv := range f.set.Scheme.PrioritizedVersionsAllGroups() {
		if strings.Contains(gv.Version, "alpha") || strings.Contains(gv.Version, "beta") {
			continue
		}
		for kind := range objectKinds(f.set.Scheme, gv) {
			plural, _ := meta.UnsafeGuessKindToResource(gv.WithKind(kind))
			consider(plural, kind)
		}
	}
	f.mu.Lock()
	for r, known := range f.served {
		consider(r, known.Kind)
	}
	f.mu.Unlock()
	slices.Sort(near)
	near = slices.Compact(near)
	return near[:min(len(near), most)]
}

// typo reports whether two names differ by one letter that is missing or wrong, or by two swapped letters.
func typo(a, b string) bool {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) == 2 && len(b) == 2 {
		return a[0] == b[1] && a[1] == b[0]
	}
	return len(a) <= 1 && len(b) <= 1
}
