package factory

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
	"github.com/mirador-k8s/mirador/source/kube"
	"github.com/mirador-k8s/mirador/store"
)

// Generic is a handle on objects whose type is known only at run time.
type Generic interface {
	// Resource returns the mirrored resource.
	Resource() schema.GroupVersionResource
	// Get and List are those of a Lister.
	Get(namespace, name string) (runtime.Object, error)
	List(selector labels.Selector) ([]runtime.Object, error)
	// Subscribe, AddIndex, HasSynced, WaitSynced and Release are those of a Handle.
	Subscribe(h informer.Handler[runtime.Object], opts *informer.HandlerOptions) (*Subscription, error)
	AddIndex(name string, values store.IndexFunc[runtime.Object]) error
	HasSynced() bool
	WaitSynced(ctx context.Context) error
	Release()
}

// opener opens a resource whose Go type it knows.
type opener func(f *Factory, scope *Scope) (Generic, error)

func openerOf[T runtime.Object]() opener {
	return func(f *Factory, scope *Scope) (Generic, error) {
		h, err := Of[T](f, scope)
		if err != nil {
			return nil, err
		}
		return generic[T]{h}, nil
	}
}

// ForResource mirrors a resource by its name. If its Go type is known, from an earlier Of or from ResourceOf, it shares
// that informer. If the factory's scheme has a type for it, the objects are of that type, in an informer of their own.
// Otherwise they are maps, shared with Dynamic.
func (f *Factory) ForResource(gvr schema.GroupVersionResource, scope *Scope) (Generic, error) {
	if f == nil {
		return nil, errNoFactory
	}
	f.mu.Lock()
	known := f.openers[gvr]
	f.mu.Unlock()
	if known != nil {
		return known(f, scope)
	}
	if gvk, ok := kindOf(f.set.Scheme, gvr); ok {
		h, err := open(f, key{gvr: gvr, form: asNamed}, scope,
			func(opts *kube.Options) (source.Source[runtime.Object], error) {
				return openNamed(f, gvk, gvr, opts)
			})
		if err != nil {
			return nil, err
		}
		return generic[runtime.Object]{h}, nil
	}
	h, err := f.Dynamic(gvr, scope)
	if err != nil {
		return nil, err
	}
	return generic[*unstructured.Unstructured]{h}, nil
}

// learnType remembers the first Go type that a resource is opened with.
func (f *Factory) learnType(gvr schema.GroupVersionResource, open opener) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.openers[gvr] == nil {
		f.openers[gvr] = open
	}
}

// generic is a Generic over a typed handle.
type generic[T runtime.Object] struct{ *Handle[T] }

// Get returns one object.
func (g generic[T]) Get(namespace, name string) (runtime.Object, error) {
	obj, err := g.Lister().Get(namespace, name)
	if err != nil {
		return nil, err // not obj: a nil pointer in an interface is not nil
	}
	return obj, nil
}

// List returns the objects that match a selector.
func (g generic[T]) List(selector labels.Selector) ([]runtime.Object, error) {
	objs, err := g.Lister().List(selector)
	if err != nil {
		return nil, err
	}
	out := make([]runtime.Object, len(objs))
	for i, o := range objs {
		out[i] = o
	}
	return out, nil
}

// Subscribe adds a handler.
func (g generic[T]) Subscribe(h informer.Handler[runtime.Object],
	opts *informer.HandlerOptions) (*Subscription, error) {
	if h == nil {
		return g.Handle.Subscribe(nil, opts)
	}
	return g.Handle.Subscribe(informer.HandlerFunc[T](func(e object.Event[T]) {
		out := object.Event[runtime.Object]{
			Type: e.Type, Key: e.Key, Version: e.Version, OldUID: e.OldUID, NewUID: e.NewUID,
			Initial: e.Initial, Missed: e.Missed, Unchanged: e.Unchanged, Epoch: e.Epoch,
		}
		if e.Type != object.Added {
			out.Old = e.Old
		}
		if e.Type != object.Deleted {
			out.New = e.New
		}
		h.Handle(out)
	}), opts)
}

// AddIndex adds an index.
func (g generic[T]) AddIndex(name string, values store.IndexFunc[runtime.Object]) error {
	if values == nil {
		return g.Handle.AddIndex(name, nil)
	}
	if store.IsByNamespace(values) {
		return g.Handle.AddIndex(name, store.ByNamespace[T]())
	}
	return g.addIndex(name, index[T]{id: identity(values), values: func(obj T) ([]string, error) { return values(obj) }})
}
