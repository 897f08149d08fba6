package cache

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgo "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// The functions of this file compute something from their arguments alone, without
// the engine. So they call client-go's.

// MetaNamespaceKeyFunc returns "namespace/name", or "name" for an object without a namespace.
func MetaNamespaceKeyFunc(obj any) (string, error) { return clientgo.MetaNamespaceKeyFunc(obj) }

// DeletionHandlingMetaNamespaceKeyFunc is MetaNamespaceKeyFunc that also accepts a
// DeletedFinalStateUnknown.
func DeletionHandlingMetaNamespaceKeyFunc(obj any) (string, error) {
	return clientgo.DeletionHandlingMetaNamespaceKeyFunc(obj)
}

// SplitMetaNamespaceKey splits a key of MetaNamespaceKeyFunc.
func SplitMetaNamespaceKey(key string) (namespace, name string, err error) {
	return clientgo.SplitMetaNamespaceKey(key)
}

// NewObjectName joins a namespace and a name.
func NewObjectName(namespace, name string) ObjectName {
	return clientgo.NewObjectName(namespace, name)
}

// ParseObjectName parses the result of ObjectName.String.
func ParseObjectName(s string) (ObjectName, error) { return clientgo.ParseObjectName(s) }

// ObjectToName returns the name of an object.
func ObjectToName(obj any) (ObjectName, error) { return clientgo.ObjectToName(obj) }

// DeletionHandlingObjectToName is ObjectToName that also accepts a DeletedFinalStateUnknown.
func DeletionHandlingObjectToName(obj any) (ObjectName, error) {
	return clientgo.DeletionHandlingObjectToName(obj)
}

// MetaObjectToName returns the name of an object with metadata.
func MetaObjectToName(obj metav1.Object) ObjectName { return clientgo.MetaObjectToName(obj) }

// NamespacedNameAsObjectName converts a NamespacedName.
func NamespacedNameAsObjectName(nn types.NamespacedName) ObjectName {
	return clientgo.NamespacedNameAsObjectName(nn)
}

// MetaNamespaceIndexFunc indexes by namespace.
func MetaNamespaceIndexFunc(obj any) ([]string, error) { return clientgo.MetaNamespaceIndexFunc(obj) }

// IndexFuncToKeyFuncAdapter returns a KeyFunc for an IndexFunc with exactly one value for each object.
func IndexFuncToKeyFuncAdapter(f IndexFunc) KeyFunc { return clientgo.IndexFuncToKeyFuncAdapter(f) }

// ListAll calls appendFn for every object of a store that matches a selector.
func ListAll(store Store, selector labels.Selector, appendFn AppendFunc) error {
	return clientgo.ListAll(store, selector, appendFn)
}

// ListAllByNamespace is ListAll for one namespace. It uses the index by namespace if there is one.
func ListAllByNamespace(indexer Indexer, namespace string, selector labels.Selector, appendFn AppendFunc) error {
	return clientgo.ListAllByNamespace(indexer, namespace, selector, appendFn)
}

// NewGenericLister returns a lister of an indexer's objects.
func NewGenericLister(indexer Indexer, resource schema.GroupResource) GenericLister {
	return clientgo.NewGenericLister(indexer, resource)
}

// NewListWatchFromClient returns a ListWatch of a resource through a REST client.
func NewListWatchFromClient(c Getter, resource, namespace string, fieldSelector fields.Selector) *ListWatch {
	return clientgo.NewListWatchFromClient(c, resource, namespace, fieldSelector)
}

// NewFilteredListWatchFromClient is NewListWatchFromClient with a function that
// changes the options of each request.
func NewFilteredListWatchFromClient(c Getter, resource, namespace string,
	optionsModifier func(options *metav1.ListOptions)) *ListWatch {
	return clientgo.NewFilteredListWatchFromClient(c, resource, namespace, optionsModifier)
}

// ToListWatcherWithWatchListSemantics gives a ListWatch the WatchList semantics of its
// client. A ListWatch that does not state them is listed and watched.
func ToListWatcherWithWatchListSemantics(lw *ListWatch, client any) ListerWatcher {
	return clientgo.ToListWatcherWithWatchListSemantics(lw, client)
}

// ToListerWithContext converts a Lister.
func ToListerWithContext(l Lister) ListerWithContext { return clientgo.ToListerWithContext(l) }

// ToWatcherWithContext converts a Watcher.
func ToWatcherWithContext(w Watcher) WatcherWithContext { return clientgo.ToWatcherWithContext(w) }

// ToListerWatcherWithContext converts a ListerWatcher.
func ToListerWatcherWithContext(lw ListerWatcher) ListerWatcherWithContext {
	return clientgo.ToListerWatcherWithContext(lw)
}

// NewRetryWithDeadline decides how long to retry after errors of one kind.
func NewRetryWithDeadline(maxRetryDuration, minResetPeriod time.Duration, isRetryable func(error) bool,
	clock clock.Clock) RetryWithDeadline {
	return clientgo.NewRetryWithDeadline(maxRetryDuration, minResetPeriod, isRetryable, clock)
}

// WaitForCacheSync waits until all caches have synced. It returns false if stopCh was closed first.
func WaitForCacheSync(stopCh <-chan struct{}, cacheSyncs ...InformerSynced) bool {
	return clientgo.WaitForCacheSync(stopCh, cacheSyncs...)
}

// WaitForNamedCacheSync is WaitForCacheSync with log messages.
func WaitForNamedCacheSync(controllerName string, stopCh <-chan struct{}, cacheSyncs ...InformerSynced) bool {
	return clientgo.WaitForNamedCacheSync(controllerName, stopCh, cacheSyncs...)
}

// WaitForNamedCacheSyncWithContext is WaitForNamedCacheSync with the context's logger.
func WaitForNamedCacheSyncWithContext(ctx context.Context, cacheSyncs ...InformerSynced) bool {
	return clientgo.WaitForNamedCacheSyncWithContext(ctx, cacheSyncs...)
}

// IsDone reports whether a checker is done.
func IsDone(checker DoneChecker) bool { return clientgo.IsDone(checker) }

// ShutDownEventHandler removes a handler and waits until its last callback has returned.
func ShutDownEventHandler(informer SharedInformer, handle ResourceEventHandlerRegistration) error {
	return clientgo.ShutDownEventHandler(informer, handle)
}

// NewInformerName reserves a name for the metrics of informers.
func NewInformerName(name string) (*InformerName, error) { return clientgo.NewInformerName(name) }

// ResetInformerNamesForTesting releases all reserved names.
func ResetInformerNamesForTesting() { clientgo.ResetInformerNamesForTesting() }

// SetReflectorMetricsProvider exists for compatibility. Neither client-go's reflectors
// nor this package's use the provider. See Engine for what can be measured.
func SetReflectorMetricsProvider(p MetricsProvider) { clientgo.SetReflectorMetricsProvider(p) }

// NewIntegerResourceVersionMutationCache returns client-go's MutationCache.
func NewIntegerResourceVersionMutationCache(logger klog.Logger, backingCache Store, indexer Indexer, ttl time.Duration,
	includeAdds bool) MutationCache {
	return clientgo.NewIntegerResourceVersionMutationCache(logger, backingCache, indexer, ttl, includeAdds)
}

// NewIntegerResourceVersionMutationCacheWithOptions returns client-go's MutationCache.
func NewIntegerResourceVersionMutationCacheWithOptions(logger klog.Logger, backingCache Store,
	options MutationCacheOptions) MutationCache {
	return clientgo.NewIntegerResourceVersionMutationCacheWithOptions(logger, backingCache, options)
}

// NewTypedSharedIndexInformer wraps an informer with typed methods.
func NewTypedSharedIndexInformer[T Object](informer SharedIndexInformer) TypedSharedIndexInformer[T] {
	return clientgo.NewTypedSharedIndexInformer[T](informer)
}

// TypedIndexerFuncToIndexerFunc converts a typed index function.
func TypedIndexerFuncToIndexerFunc[T any](f TypedIndexFunc[T]) IndexFunc {
	return clientgo.TypedIndexerFuncToIndexerFunc(f)
}

// TypedIndexersToIndexers converts typed index functions.
func TypedIndexersToIndexers[T any](indexers TypedIndexers[T]) Indexers {
	return clientgo.TypedIndexersToIndexers(indexers)
}
