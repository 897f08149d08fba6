package factory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/source"
	"github.com/mirador-k8s/mirador/source/kube"
)

// Handle gives one user access to the informers of a resource and scope, until Release.
type Handle[T any] struct {
	gvr schema.GroupVersionResource

	// parts are the informers, by namespace; nil once released. Reads take no lock.
	parts atomic.Pointer[[]*shared[T]]

	mu   sync.Mutex
	subs map[*Subscription]struct{}
}

var errNoFactory = errors.New("the factory is nil; make one with factory.New")

// Of mirrors the objects of a Go type, such as *corev1.Pod.
func Of[T runtime.Object](f *Factory, scope *Scope) (*Handle[T], error) {
	if f == nil {
		return nil, errNoFactory
	}
	t := reflect.TypeFor[T]()
	gvr, err := f.resourceOf(t, newObject[T]())
	if err != nil {
		// The source's error says more about what is wrong with the type.
		if _, bad := kube.Typed[T](f.cfg, &kube.Options{Scheme: f.set.Scheme}); bad != nil {
			err = bad
		}
		return nil, err
	}
	h, err := open(f, key{gvr: gvr, form: asTyped, goType: t}, scope,
		func(opts *kube.Options) (source.Source[T], error) {
			opts.Scheme, opts.Resource = f.set.Scheme, gvr
			return kube.Typed[T](f.cfg, opts)
		})
	if err == nil {
		f.learnType(gvr, openerOf[T]())
	}
	return h, err
}

// Dynamic mirrors any resource as maps that keep every field.
func (f *Factory) Dynamic(gvr schema.GroupVersionResource, scope *Scope) (*Handle[*unstructured.Unstructured],
	error) {
	return openByName(f, gvr, asDynamic, scope, kube.Dynamic)
}

// Metadata mirrors only the metadata of any resource.
func (f *Factory) Metadata(gvr schema.GroupVersionResource, scope *Scope) (*Handle[*metav1.PartialObjectMetadata],
	error) {
	return openByName(f, gvr, asMetadata, scope, kube.Metadata)
}

// Raw mirrors any resource as the JSON that is served.
func (f *Factory) Raw(gvr schema.GroupVersionResource, scope *Scope) (*Handle[*kube.RawObject], error) {
	return openByName(f, gvr, asRaw, scope, kube.Raw)
}

// openByName opens a resource in a form that needs no Go type.
func openByName[T any](f *Factory, gvr schema.GroupVersionResource, as form, scope *Scope,
	make func(*rest.Config, schema.GroupVersionResource, *kube.Options) (*kube.Source[T], error)) (*Handle[T], error) {
	if f == nil {
		return nil, errNoFactory
	}
	if err := f.checkName(gvr); err != nil {
		return nil, err
	}
	return open(f, key{gvr: gvr, form: as}, scope, func(opts *kube.Options) (source.Source[T], error) {
		return make(f.cfg, gvr, opts)
	})
}

// open returns a handle on the informers of a resource, one for each namespace of the scope.
func open[T any](f *Factory, k key, scope *Scope,
	src func(*kube.Options) (source.Source[T], error)) (*Handle[T], error) {
	sc, err := f.scopeFor(k.gvr, scope)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", fullName(k.gvr), err)
	}
	h := &Handle[T]{gvr: k.gvr, subs: map[*Subscription]struct{}{}}
	var parts []*shared[T]
	k.labels, k.fields = sc.labels, sc.fields
	f.mu.Lock()
	for _, ns := range sc.parts() {
		k.namespace = ns
		var s *shared[T]
		if s, err = acquire(f, k, src); err != nil {
			break
		}
		parts = append(parts, s)
	}
	f.mu.Unlock()
	h.parts.Store(&parts)
	if err != nil {
		h.Release()
		return nil, err
	}
	return h, nil
}

// scopeFor returns the scope of a handle: its own, or the factory's where it has none.
func (f *Factory) scopeFor(gvr schema.GroupVersionResource, own *Scope) (scope, error) {
	sc := f.set.scope
	if own != nil {
		var err error
		if sc, err = own.check(); err != nil {
			return sc, err
		}
	}
	if namespaced, known := f.namespaced(gvr); known && !namespaced && len(sc.namespaces) > 0 {
		if own != nil {
			return sc, fmt.Errorf("objects of this resource are in no namespace; leave Scope.Namespaces %q out", sc.namespaces)
		}
		sc.namespaces = nil
	}
	return sc, nil
}

// newObject returns an empty object, or nil if T is not a pointer to a struct.
func newObject[T runtime.Object]() runtime.Object {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil
	}
	return reflect.New(t.Elem()).Interface().(runtime.Object)
}

// resourceOf returns the resource of a Go type.
func (f *Factory) resourceOf(t reflect.Type, empty runtime.Object) (gvr schema.GroupVersionResource, err error) {
	if empty == nil {
		return gvr, fmt.Errorf("open %s: it is not a pointer to a struct", t)
	}
	if gvr, ok := f.set.resources[t]; ok {
		return gvr, nil
	}
	kinds, _, err := f.set.Scheme.ObjectKinds(empty)
	if err != nil {
		return gvr, fmt.Errorf("open %s: %w", t, err)
	}
	gvr, _ = meta.UnsafeGuessKindToResource(kinds[0])
	return gvr, nil
}

// Resource returns the resource that the handle mirrors.
func (h *Handle[T]) Resource() schema.GroupVersionResource { return h.gvr }

// Informers returns the current informers of the handle: one for each namespace of the scope, or one for all. A stop of
// the factory replaces them.
func (h *Handle[T]) Informers() []*informer.Informer[T] {
	parts := h.parts.Load()
	if parts == nil {
		return nil
	}
	out := make([]*informer.Informer[T], len(*parts))
	for i, p := range *parts {
		out[i] = p.current.Load()
	}
	return out
}

// Lister returns a lister of the mirrored objects.
func (h *Handle[T]) Lister() *Lister[T] { return &Lister[T]{h: h} }

// HasSynced reports whether the initial state is stored.
func (h *Handle[T]) HasSynced() bool {
	all := h.Informers()
	for _, inf := range all {
		if !inf.HasSynced() {
			return false
		}
	}
	return len(all) > 0
}

// WaitSynced waits until the initial state is stored. Its error says what the informer is doing instead.
func (h *Handle[T]) WaitSynced(ctx context.Context) error {
	if _, err := h.use("wait for"); err != nil {
		return err
	}
	for _, inf := range h.Informers() {
		if err := inf.WaitSynced(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Release ends the handle's subscriptions. Informers without other users are stopped, and their memory is freed.
// Release does not wait for callbacks in progress, so a callback may call it; Stop of the factory waits for them. A
// second call does nothing.
func (h *Handle[T]) Release() {
	h.mu.Lock()
	parts := h.parts.Swap(nil)
	subs := slices.Collect(maps.Keys(h.subs))
	h.mu.Unlock()
	for _, s := range subs {
		s.Remove()
	}
	if parts == nil {
		return
	}
	for _, p := range *parts {
		p.release()
	}
}

// ErrReleased is wrapped by the errors of a handle that was released.
var ErrReleased = errors.New("the handle was released; get a new one from the factory")

func (h *Handle[T]) released(what string) error {
	return fmt.Errorf("%s %s: %w", what, fullName(h.gvr), ErrReleased)
}

// use returns the shared informers, or an error if the handle was released.
func (h *Handle[T]) use(what string) ([]*shared[T], error) {
	if parts := h.parts.Load(); parts != nil {
		return *parts, nil
	}
	return nil, h.released(what)
}

// adopt adds a subscription that Release will end. It returns false if the handle is already released.
func (h *Handle[T]) adopt(s *Subscription) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.parts.Load() == nil {
		return false
	}
	h.subs[s] = struct{}{}
	return true
}

func (h *Handle[T]) title() string { return fullName(h.gvr) }

func (h *Handle[T]) forget(s *Subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.subs, s)
}
