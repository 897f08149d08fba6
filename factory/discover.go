package factory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/mirador-k8s/mirador/informer"
)

// Resource is a resource that the server serves and that can be listed and watched.
type Resource struct {
	schema.GroupVersionResource
	Kind       string
	Namespaced bool
}

// Set has a handle on every resource that discovery lists and a filter accepts.
type Set[T any] struct {
	f      *Factory
	open   func(schema.GroupVersionResource, *Scope) (*Handle[T], error)
	filter func(Resource) bool

	mu       sync.Mutex
	handles  map[schema.GroupVersionResource]*Handle[T]
	released bool
}

// All mirrors every resource that can be listed and watched and that filter accepts (nil accepts all), each in its
// group's preferred version, including custom resources:
//
//	everything, err := factory.All(ctx, f, f.Metadata, nil)
//
// open selects the form: f.Dynamic, f.Metadata or f.Raw. Groups whose discovery fails, for example because an
// aggregated API server is down, are left out until a Refresh finds them; they are reported as problems and are not
// an error.
func All[T any](ctx context.Context, f *Factory,
	open func(schema.GroupVersionResource, *Scope) (*Handle[T], error), filter func(Resource) bool) (*Set[T], error) {
	switch {
	case f == nil:
		return nil, errNoFactory
	case open == nil:
		return nil, errors.New("mirror everything: open is nil; give f.Dynamic, f.Metadata or f.Raw")
	}
	set := &Set[T]{f: f, open: open, filter: filter, handles: map[schema.GroupVersionResource]*Handle[T]{}}
	found, err := f.discover(ctx)
	if err != nil {
		return nil, fmt.Errorf("mirror everything: %w", err)
	}
	if _, err := set.refresh(found); err != nil {
		set.Release()
		return nil, fmt.Errorf("mirror everything: %w", err)
	}
	f.mu.Lock()
	f.sets[set] = struct{}{}
	f.mu.Unlock()
	return set, nil
}

// Handles returns the handles of the set, sorted by name.
func (s *Set[T]) Handles() []*Handle[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.handles), func(a, b *Handle[T]) int {
		return strings.Compare(a.title(), b.title())
	})
}

// Release releases every handle of the set. A later Refresh does not change the set.
func (s *Set[T]) Release() {
	s.f.mu.Lock()
	delete(s.f.sets, s)
	s.f.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.released = true
	for _, h := range s.handles {
		h.Release()
	}
	clear(s.handles)
}

// Changes is the result of a Refresh.
type Changes struct {
	// Added and Removed are the resources that sets have opened and released.
	Added, Removed []schema.GroupVersionResource
	// Failed has the group versions whose discovery failed. Their known resources stay as they are.
	Failed map[schema.GroupVersion]error
}

// Refresh repeats discovery: the sets made by All open new resources and release those that are no longer served.
func (f *Factory) Refresh(ctx context.Context) (Changes, error) {
	found, err := f.discover(ctx)
	if err != nil {
		return Changes{}, fmt.Errorf("refresh what is mirrored: %w", err)
	}
	all := Changes{Failed: found.failed}
	f.mu.Lock()
	sets := slices.Collect(maps.Keys(f.sets))
	f.mu.Unlock()
	var failed []error
	for _, s := range sets {
		c, err := s.refresh(found)
		all.Added = append(all.Added, c.Added...)
		all.Removed = append(all.Removed, c.Removed...)
		failed = append(failed, err)
	}
	all.Added, all.Removed = sortedUnique(all.Added), sortedUnique(all.Removed)
	return all, errors.Join(failed...)
}

func sortedUnique(names []schema.GroupVersionResource) []schema.GroupVersionResource {
	slices.SortFunc(names,
		func(a, b schema.GroupVersionResource) int { return strings.Compare(fullName(a), fullName(b)) })
	return slices.Compact(names)
}

// refresher is a Set of any form.
type refresher interface {
	refresh(*discovered) (Changes, error)
}

// refresh opens new resources and releases those that are no longer served.
func (s *Set[T]) refresh(found *discovered) (c Changes, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.released {
		return c, nil
	}
	for gvr, r := range found.resources {
		if s.handles[gvr] != nil || s.filter != nil && !s.filter(r) {
			continue
		}
		h, openErr := s.open(gvr, nil)
		if openErr != nil {
			err = errors.Join(err, openErr)
			continue
		}
		s.handles[gvr] = h
		c.Added = append(c.Added, gvr)
	}
	for gvr, h := range s.handles {
		if _, served := found.resources[gvr]; served {
			continue
		}
		h.Release()
		delete(s.handles, gvr)
		c.Removed = append(c.Removed, gvr)
	}
	return c, err
}

// discovered is the result of a discovery.
type discovered struct {
	// resources includes the known resources of group versions whose discovery failed.
	resources map[schema.GroupVersionResource]Resource
	failed    map[schema.GroupVersion]error
}

// discover asks the server which resources it serves, and stores the result.
func (f *Factory) discover(ctx context.Context) (*discovered, error) {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(f.cfg, f.client)
	if err != nil {
		return nil, fmt.Errorf("ask %s what it serves: %w", f.cfg.Host, err)
	}
	lists, err := client.ServerPreferredResourcesWithContext(ctx)
	failed, partly := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partly {
		return nil, fmt.Errorf("ask %s what it serves; check that the API server runs and that the config's Host is "+
			"right: %w", f.cfg.Host, err)
	}
	found := &discovered{resources: map[schema.GroupVersionResource]Resource{}, failed: failed}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			f.problem(informer.Problem{Doing: "discover", Err: fmt.Errorf("read group version %q: %w", list.GroupVersion, err)})
			continue
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch") && !strings.Contains(r.Name, "/") {
				gvr := gv.WithResource(r.Name)
				found.resources[gvr] = Resource{GroupVersionResource: gvr, Kind: r.Kind, Namespaced: r.Namespaced}
			}
		}
	}
	f.mu.Lock()
	// Known resources of failed groups stay.
	for gvr, r := range f.served {
		if _, unknown := failed[gvr.GroupVersion()]; unknown {
			found.resources[gvr] = r
		}
	}
	f.served = found.resources
	f.mu.Unlock()
	for gv, err := range failed {
		f.problem(informer.Problem{Doing: "discover",
			Err: fmt.Errorf("ask %s what it serves in %s; its known resources stay: %w", f.cfg.Host, gv, err)})
	}
	return found, nil
}
