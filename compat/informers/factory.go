package informers

import (
	"context"
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgo "k8s.io/client-go/informers"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"

	"github.com/mirador-k8s/mirador/compat/cache"
	"github.com/mirador-k8s/mirador/compat/internal/pool"
)

// SharedInformerFactory provides shared informers of the built-in resources.
type SharedInformerFactory = clientgo.SharedInformerFactory

// GenericInformer is an informer of any type.
type GenericInformer = clientgo.GenericInformer

// SharedInformerOption configures a factory.
type SharedInformerOption func(*sharedInformerFactory) *sharedInformerFactory

// sharedInformerFactory is a SharedInformerFactory.
type sharedInformerFactory struct {
	client    kubernetes.Interface
	namespace string
	tweak     internalinterfaces.TweakListOptionsFunc
	resync    time.Duration
	custom    map[reflect.Type]time.Duration
	transform cache.TransformFunc
	name      *cache.InformerName
	options   cache.Options
	pool      pool.Pool[reflect.Type]
}

var _ SharedInformerFactory = &sharedInformerFactory{}

// WithCustomResyncConfig sets the resync periods of some types.
func WithCustomResyncConfig(resyncConfig map[metav1.Object]time.Duration) SharedInformerOption {
	return func(f *sharedInformerFactory) *sharedInformerFactory {
		for obj, d := range resyncConfig {
			f.custom[reflect.TypeOf(obj)] = d
		}
		return f
	}
}

// WithTweakListOptions sets a function that changes the options of each request.
func WithTweakListOptions(tweakListOptions internalinterfaces.TweakListOptionsFunc) SharedInformerOption {
	return func(f *sharedInformerFactory) *sharedInformerFactory {
		f.tweak = tweakListOptions
		return f
	}
}

// WithNamespace restricts the factory to one namespace.
func WithNamespace(namespace string) SharedInformerOption {
	return func(f *sharedInformerFactory) *sharedInformerFactory {
		f.namespace = namespace
		return f
	}
}

// WithTransform sets a transform that is applied to every object before it is stored.
func WithTransform(transform cache.TransformFunc) SharedInformerOption {
	return func(f *sharedInformerFactory) *sharedInformerFactory {
		f.transform = transform
		return f
	}
}

// WithInformerName sets the name of the informers in metrics.
func WithInformerName(informerName *cache.InformerName) SharedInformerOption {
	return func(f *sharedInformerFactory) *sharedInformerFactory {
		f.name = informerName
		return f
	}
}

// WithCacheOptions sets options that client-go does not have, such as a bound on the
// backlog of a slow handler, for every informer.
func WithCacheOptions(o cache.Options) SharedInformerOption {
	return func(f *sharedInformerFactory) *sharedInformerFactory {
		f.options = o
		return f
	}
}

// NewSharedInformerFactory returns a factory for all namespaces.
func NewSharedInformerFactory(client kubernetes.Interface, defaultResync time.Duration) SharedInformerFactory {
	return NewSharedInformerFactoryWithOptions(client, defaultResync)
}

// NewFilteredSharedInformerFactory returns a factory for one namespace. tweak, if it is
// not nil, changes the options of each request.
func NewFilteredSharedInformerFactory(client kubernetes.Interface, defaultResync time.Duration, namespace string,
	tweak internalinterfaces.TweakListOptionsFunc) SharedInformerFactory {
	return NewSharedInformerFactoryWithOptions(client, defaultResync, WithNamespace(namespace),
		WithTweakListOptions(tweak))
}

// NewSharedInformerFactoryWithOptions returns a factory.
func NewSharedInformerFactoryWithOptions(client kubernetes.Interface, defaultResync time.Duration,
	options ...SharedInformerOption) SharedInformerFactory {
	f := &sharedInformerFactory{client: client, namespace: metav1.NamespaceAll, resync: defaultResync,
		custom: map[reflect.Type]time.Duration{}}
	for _, o := range options {
		f = o(f)
	}
	return f
}

// InformerName returns the name of the informers in metrics.
func (f *sharedInformerFactory) InformerName() *cache.InformerName { return f.name }

// Start starts the requested informers that do not run yet.
func (f *sharedInformerFactory) Start(stopCh <-chan struct{}) {
	f.StartWithContext(wait.ContextForChannel(stopCh))
}

// StartWithContext starts the requested informers that do not run yet.
func (f *sharedInformerFactory) StartWithContext(ctx context.Context) { f.pool.Start(ctx) }

// Shutdown waits until all informers have ended. None can be started afterwards.
func (f *sharedInformerFactory) Shutdown() {
	f.pool.Shutdown()
	f.name.Release()
}

// WaitForCacheSync waits until all started informers have synced.
func (f *sharedInformerFactory) WaitForCacheSync(stopCh <-chan struct{}) map[reflect.Type]bool {
	return f.pool.Wait(wait.ContextForChannel(stopCh))
}

// WaitForCacheSyncWithContext waits until all started informers have synced, and returns
// which have.
func (f *sharedInformerFactory) WaitForCacheSyncWithContext(ctx context.Context) cache.SyncResult {
	r := cache.SyncResult{Synced: f.pool.Wait(ctx)}
	for _, synced := range r.Synced {
		if !synced {
			r.Err = context.Cause(ctx)
		}
	}
	return r
}

// InformerFor returns the informer of a type. It calls newFunc if there is none.
func (f *sharedInformerFactory) InformerFor(obj runtime.Object,
	newFunc internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	t := reflect.TypeOf(obj)
	return f.pool.Get(t, func() cache.SharedIndexInformer {
		resync, custom := f.custom[t]
		if !custom {
			resync = f.resync
		}
		i := newFunc(f.client, resync)
		if f.transform != nil {
			_ = i.SetTransform(f.transform) // fails only after the start
		}
		return i
	})
}

// ForResource returns the informer of a built-in resource.
func (f *sharedInformerFactory) ForResource(gvr schema.GroupVersionResource) (GenericInformer, error) {
	informerOf, ok := byResource[gvr]
	if !ok {
		return nil, fmt.Errorf("no informer found for %v: it is not a built-in resource; use compat/dynamicinformer", gvr)
	}
	return generic{gvr.GroupResource(), informerOf(f)}, nil
}

type generic struct {
	resource schema.GroupResource
	informer cache.SharedIndexInformer
}

// Informer returns the informer.
func (g generic) Informer() cache.SharedIndexInformer { return g.informer }

// Lister returns a lister of the informer's objects.
func (g generic) Lister() cache.GenericLister {
	return cache.NewGenericLister(g.informer.GetIndexer(), g.resource)
}
