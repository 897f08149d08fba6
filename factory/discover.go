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

// Resource is something that a server serves and that can be listed and watched.
type Resource struct {
	schema.GroupVersionResource
	Kind       string
	Namespaced bool
}

// Set is a handle on every resource that discovery lists and a filter takes.
type Set[T any] struct {
	f      *Factory
	open   func(schema.GroupVersionResource, *Scope) (*Handle[T], error)
	filter func(Resource) bool

	mu       sync.Mutex
	handles  map[schema.GroupVersionResource]*Handle[T]
	released bool
}

// All mirrors every resource that can be listed and watched and that filter takes
// (nil takes all), each in its group's preferred version, custom ones included:
//
//	everything, err := factory.All(ctx, f, f.Metadata, nil)
//
// open says in which form: f.Dynamic, f.Metadata or f.Raw. Groups whose discovery
// fails, as that of an aggregated API server which is down, are left out until a
// Refresh finds them; they are reported as problems and no error.
func All[T any](ctx context.Context, f *Factory,
	open func(schema.GroupVersionResource, *Scope) (*Handle[T], error), filter func(Resource) bool) (*Set[T], error) {
	switch {
	case f == nil:
		return nil, errNoFactory
	case open == nil:
		return nil, errors.New("mirror everything: it is not said in which form; give f.Dynamic, f.Metadata or f.Raw")
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

// Handles are those of the set, by name.
func (s *Set[T]) Handles() []*Handle[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.handles), func(a, b *Handle[T]) int {
		return strings.Compare(a.title(), b.title())
	})
}

// Release releases every handle of the set; Refresh then leaves it alone.
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

// Changes is what a Refresh found.
type Changes struct {
	// Added and Removed are the resources that sets have opened and released.
	Added, Removed []schema.GroupVersionResource
	// Failed are the group versions that could not be asked about. What was known
	// of them stays as it is.
	Failed map[schema.GroupVersion]error
}

// Refresh asks the server what it serves now: the sets made by All open what is
// new and release what is gone.
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
	all.Added, all.Removed = tidy(all.Added), tidy(all.Removed)
	return all, errors.Join(failed...)
}

func tidy(names []schema.GroupVersionResource) []schema.GroupVersionResource {
	slices.SortFunc(names,
		func(a, b schema.GroupVersionResource) int { return strings.Compare(fullName(a), fullName(b)) })
	return slices.Compact(names)
}

// refresher is a Set of any form.
type refresher interface {
	refresh(*discovered) (Changes, error)
}

// refresh opens what is new and releases what is gone.
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

// discovered is what a server said it serves.
type discovered struct {
	// resources has what failed group versions were known to serve before, too.
	resources map[schema.GroupVersionResource]Resource
	failed    map[schema.GroupVersion]error
}

// discover asks the server what it serves, and remembers it.
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
	// What failed groups were known to serve is still known.
	for gvr, r := range f.served {
		if _, unknown := failed[gvr.GroupVersion()]; unknown {
			found.resources[gvr] = r
		}
	}
	f.served = found.resources
	f.mu.Unlock()
	for gv, err := range failed {
		f.problem(informer.Problem{Doing: "discover",
			Err: fmt.Errorf("ask %s what it serves in %s; what was known of it stays: %w", f.cfg.Host, gv, err)})
	}
	return found, nil
}
