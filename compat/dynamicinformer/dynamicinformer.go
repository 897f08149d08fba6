// Package dynamicinformer provides client-go's dynamicinformer on this module's engine.
// It has the same names; only the import path changes.
//
//	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
//	deployments := factory.ForResource(appsv1.SchemeGroupVersion.WithResource("deployments"))
package dynamicinformer

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	clientgo "k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/dynamic/dynamiclister"
	"k8s.io/client-go/informers"

	"github.com/mirador-k8s/mirador/compat/cache"
	"github.com/mirador-k8s/mirador/compat/internal/pool"
)

// DynamicSharedInformerFactory provides shared informers of any resource.
type DynamicSharedInformerFactory = clientgo.DynamicSharedInformerFactory

// TweakListOptionsFunc changes the options of each request.
type TweakListOptionsFunc = clientgo.TweakListOptionsFunc

// NewDynamicSharedInformerFactory returns a factory for all namespaces.
func NewDynamicSharedInformerFactory(client dynamic.Interface,
	defaultResync time.Duration) DynamicSharedInformerFactory {
	return NewFilteredDynamicSharedInformerFactory(client, defaultResync, metav1.NamespaceAll, nil)
}

// NewFilteredDynamicSharedInformerFactory returns a factory for one namespace.
// tweakListOptions, if it is not nil, changes the options of each request.
func NewFilteredDynamicSharedInformerFactory(client dynamic.Interface, defaultResync time.Duration, namespace string,
	tweakListOptions TweakListOptionsFunc) DynamicSharedInformerFactory {
	return &factory{client: client, resync: defaultResync, namespace: namespace, tweak: tweakListOptions}
}

type factory struct {
	client    dynamic.Interface
	resync    time.Duration
	namespace string
	tweak     TweakListOptionsFunc
	pool      pool.Pool[schema.GroupVersionResource]
}

// ForResource returns the informer of a resource.
func (f *factory) ForResource(gvr schema.GroupVersionResource) informers.GenericInformer {
	return generic{gvr, f.pool.Get(gvr, func() cache.SharedIndexInformer {
		return newInformer(f.client, gvr, f.namespace, f.resync,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, f.tweak)
	})}
}

// Start starts the requested informers that do not run yet.
func (f *factory) Start(stopCh <-chan struct{}) { f.pool.Start(wait.ContextForChannel(stopCh)) }

// WaitForCacheSync waits until all started informers have synced.
func (f *factory) WaitForCacheSync(stopCh <-chan struct{}) map[schema.GroupVersionResource]bool {
	return f.pool.Wait(wait.ContextForChannel(stopCh))
}

// Shutdown waits until all informers have ended. None can be started afterwards.
func (f *factory) Shutdown() { f.pool.Shutdown() }

// NewFilteredDynamicInformer returns an informer that belongs to no factory.
func NewFilteredDynamicInformer(client dynamic.Interface, gvr schema.GroupVersionResource, namespace string,
	resyncPeriod time.Duration, indexers cache.Indexers, tweakListOptions TweakListOptionsFunc) informers.GenericInformer {
	return generic{gvr, newInformer(client, gvr, namespace, resyncPeriod, indexers, tweakListOptions)}
}

func newInformer(client dynamic.Interface, gvr schema.GroupVersionResource, namespace string, resync time.Duration,
	indexers cache.Indexers, tweak TweakListOptionsFunc) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformerWithOptions(
		pool.ListWatch[*unstructured.UnstructuredList](client, client.Resource(gvr).Namespace(namespace), tweak),
		&unstructured.Unstructured{},
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
	return dynamiclister.NewRuntimeObjectShim(dynamiclister.New(g.informer.GetIndexer(), g.gvr))
}
