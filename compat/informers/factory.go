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

// SharedInformerFactory gives shared informers of the built-in resources.
type SharedInformerFactory = clientgo.SharedInformerFactory

// GenericInformer is an informer of whatever type.
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
	extra     cache.Options
	pool      pool.Pool[reflect.Type]
}

var _ SharedInformerFactory = &sharedInformerFactory{}

// WithCustomResyncConfig gives types a resync period of their own.
func WithCustomResyncConfig(resyncConfig map[metav1.Object]time.Duration) SharedInformerOption {
	return func(f *sharedInformerFactory) *sharedInformerFactory {
		for obj, d := range resyncConfig {
			f.custom[reflect.TypeOf(obj)] = d
		}
		return f
	}
}

// WithTweakListOptions changes the options of each request.
func WithTweakListOptions(tweakListOptions internalinterfaces.TweakListOptionsFunc) SharedInformerOption {
	return func(f *sharedInformerFactory) *sharedInformerFactory {
		f.tweak = tweakListOptions
		return f
	}
}

// WithNamespace keeps to one namespace.
func WithNamespace(namespace string) SharedInformerOption {
	return func(f *sharedInformerFactory) *sharedInformerFactory {
		f.namespace = namespace
		return f
	}
}

// WithTransform transforms every object before it is stored.
func WithTransform(transform cache.TransformFunc) SharedInformerOption {
	return func(f *sharedInformerFactory) *sharedInformerFactory {
		f.transform = transform
		return f
	}
}

// WithInformerName names the informers for metrics.
func WithInformerName(informerName *cache.InformerName) SharedInformerOption {
	return func(f *sharedInformerFactory) *sharedInformerFactory {
		f.name = informerName
		return f
	}
}

// WithCacheOptions gives every informer what client-go's options have no room for,
// such as a bound on what waits for a slow handler.
func WithCacheOptions(o cache.Options) SharedInformerOption {
	return func(f *sharedInformerFactory) *sharedInformerFactory {
		f.extra = o
		return f
	}
}

// NewSharedInformerFactory makes a factory for all namespaces.
func NewSharedInformerFactory(client kubernetes.Interface, defaultResync time.Duration) SharedInformerFactory {
	return NewSharedInformerFactoryWithOptions(client, defaultResync)
}

// NewFilteredSharedInformerFactory makes a factory for one namespace, whose requests
// are all tweaked.
func NewFilteredSharedInformerFactory(client kubernetes.Interface, defaultResync time.Duration, namespace string,
	tweak internalinterfaces.TweakListOptionsFunc) SharedInformerFactory {
	return NewSharedInformerFactoryWithOptions(client, defaultResync, WithNamespace(namespace),
		WithTweakListOptions(tweak))
}

// NewSharedInformerFactoryWithOptions makes a factory.
func NewSharedInformerFactoryWithOptions(client kubernetes.Interface, defaultResync time.Duration,
	options ...SharedInformerOption) SharedInformerFactory {
	f := &sharedInformerFactory{client: client, namespace: metav1.NamespaceAll, resync: defaultResync,
		custom: map[reflect.Type]time.Duration{}}
	for _, o := range options {
		f = o(f)
	}
	return f
}

// InformerName is what the informers are called in metrics.
func (f *sharedInformerFactory) InformerName() *cache.InformerName { return f.name }

// Start starts the informers that were asked for and do not run yet.
func (f *sharedInformerFactory) Start(stopCh <-chan struct{}) {
	f.StartWithContext(wait.ContextForChannel(stopCh))
}

// StartWithContext starts the informers that were asked for and do not run yet.
func (f *sharedInformerFactory) StartWithContext(ctx context.Context) { f.pool.Start(ctx) }

// Shutdown waits until all have ended; none can be started any more.
func (f *sharedInformerFactory) Shutdown() {
	f.pool.Shutdown()
	f.name.Release()
}

// WaitForCacheSync waits until all that were started have synced.
func (f *sharedInformerFactory) WaitForCacheSync(stopCh <-chan struct{}) map[reflect.Type]bool {
	return f.pool.Wait(wait.ContextForChannel(stopCh))
}

// WaitForCacheSyncWithContext waits until all that were started have synced, and
// says which have not.
func (f *sharedInformerFactory) WaitForCacheSyncWithContext(ctx context.Context) cache.SyncResult {
	r := cache.SyncResult{Synced: f.pool.Wait(ctx)}
	for _, synced := range r.Synced {
		if !synced {
			r.Err = context.Cause(ctx)
		}
	}
	return r
}

// InformerFor gives the informer of a type, which newFunc makes if there is none.
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
			_ = i.SetTransform(f.transform) // fails only once it runs
		}
		return i
	})
}

// ForResource gives the informer of a built-in resource.
func (f *sharedInformerFactory) ForResource(gvr schema.GroupVersionResource) (GenericInformer, error) {
	informerOf, ok := byResource[gvr]
	if !ok {
		return nil, fmt.Errorf("no informer found for %v: it is not built in; compat/dynamicinformer has one for any "+
			"resource", gvr)
	}
	return generic{gvr.GroupResource(), informerOf(f)}, nil
}

type generic struct {
	resource schema.GroupResource
	informer cache.SharedIndexInformer
}

// Informer gives the informer.
func (g generic) Informer() cache.SharedIndexInformer { return g.informer }

// Lister lists what the informer has stored.
func (g generic) Lister() cache.GenericLister {
	return cache.NewGenericLister(g.informer.GetIndexer(), g.resource)
}
