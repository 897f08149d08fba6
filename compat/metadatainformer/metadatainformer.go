// Package metadatainformer provides client-go's metadatainformer on this module's
// engine. It has the same names; only the import path changes.
//
//	factory := metadatainformer.NewSharedInformerFactory(client, 0)
//	pods := factory.ForResource(corev1.SchemeGroupVersion.WithResource("pods"))
package metadatainformer

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	clientgo "k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/metadata/metadatalister"

	"github.com/mirador-k8s/mirador/compat/cache"
	"github.com/mirador-k8s/mirador/compat/internal/pool"
)

// SharedInformerFactory provides shared informers of the metadata of any resource.
type SharedInformerFactory = clientgo.SharedInformerFactory

// TweakListOptionsFunc changes the options of each request.
type TweakListOptionsFunc = clientgo.TweakListOptionsFunc

// SharedInformerOption configures a factory.
type SharedInformerOption func(*factory) *factory

// WithTransform sets a transform that is applied to every object before it is stored.
func WithTransform(transform cache.TransformFunc) SharedInformerOption {
	return func(f *factory) *factory {
		f.transform = transform
		return f
	}
}

// NewSharedInformerFactory returns a factory for all namespaces.
func NewSharedInformerFactory(client metadata.Interface, defaultResync time.Duration) SharedInformerFactory {
	return NewSharedInformerFactoryWithOptions(client, defaultResync)
}

// NewFilteredSharedInformerFactory returns a factory for one namespace.
// tweakListOptions, if it is not nil, changes the options of each request.
func NewFilteredSharedInformerFactory(client metadata.Interface, defaultResync time.Duration, namespace string,
	tweakListOptions TweakListOptionsFunc) SharedInformerFactory {
	return &factory{client: client, resync: defaultResync, namespace: namespace, tweak: tweakListOptions}
}

// NewSharedInformerFactoryWithOptions returns a factory for all namespaces.
func NewSharedInformerFactoryWithOptions(client metadata.Interface, defaultResync time.Duration,
	options ...SharedInformerOption) SharedInformerFactory {
	f := &factory{client: client, resync: defaultResync, namespace: metav1.NamespaceAll}
	for _, o := range options {
		f = o(f)
	}
	return f
}

type factory struct {
	client    metadata.Interface
	resync    time.Duration
	namespace string
	tweak     TweakListOptionsFunc
	transform cache.TransformFunc
	pool      pool.Pool[schema.GroupVersionResource]
}

// ForResource returns the informer of a resource.
func (f *factory) ForResource(gvr schema.GroupVersionResource) informers.GenericInformer {
	return generic{gvr, f.pool.Get(gvr, func() cache.SharedIndexInformer {
		i := newInformer(f.client, gvr, f.namespace, f.resync,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, f.tweak)
		_ = i.SetTransform(f.transform) // fails only after the start
		return i
	})}
}

// Start starts the requested informers that do not run yet.
func (f *factory) Start(stopCh <-chan struct{}) { f.StartWithContext(wait.ContextForChannel(stopCh)) }

// StartWithContext starts the requested informers that do not run yet.
func (f *factory) StartWithContext(ctx context.Context) { f.pool.Start(ctx) }

// WaitForCacheSync waits until all started informers have synced.
func (f *factory) WaitForCacheSync(stopCh <-chan struct{}) map[schema.GroupVersionResource]bool {
	return f.pool.Wait(wait.ContextForChannel(stopCh))
}

// Shutdown waits until all informers have ended. None can be started afterwards.
func (f *factory) Shutdown() { f.pool.Shutdown() }

// NewFilteredMetadataInformer returns an informer that belongs to no factory.
func NewFilteredMetadataInformer(client metadata.Interface, gvr schema.GroupVersionResource, namespace string,
	resyncPeriod time.Duration, indexers cache.Indexers, tweakListOptions TweakListOptionsFunc) informers.GenericInformer {
	return generic{gvr, newInformer(client, gvr, namespace, resyncPeriod, indexers, tweakListOptions)}
}

func newInformer(client metadata.Interface, gvr schema.GroupVersionResource, namespace string, resync time.Duration,
	indexers cache.Indexers, tweak TweakListOptionsFunc) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformerWithOptions(
		pool.ListWatch[*metav1.PartialObjectMetadataList](client, client.Resource(gvr).Namespace(namespace), tweak),
		&metav1.PartialObjectMetadata{},
		cache.SharedIndexInformerOptions{ResyncPeriod: resync, Indexers: indexers, ObjectDescription: gvr.String()},
	)
}

type generic struct {
	gvr      schema.GroupVersionResource
	informer cache.SharedIndexInformer
}

// Informer returns the informer.
func (g generic) Informer() cache.SharedIndexInformer { return g.informer }

// Lister returns a lister of the informer's objects.
func (g generic) Lister() cache.GenericLister {
	return metadatalister.NewRuntimeObjectShim(metadatalister.New(g.informer.GetIndexer(), g.gvr))
}
