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

// The functions of this file have no engine behind them: they compute something
// from their arguments alone, and so client-go's do.

// MetaNamespaceKeyFunc gives "namespace/name", or "name" where there is no namespace.
func MetaNamespaceKeyFunc(obj any) (string, error) { return clientgo.MetaNamespaceKeyFunc(obj) }

// DeletionHandlingMetaNamespaceKeyFunc is MetaNamespaceKeyFunc that also takes a
// DeletedFinalStateUnknown.
func DeletionHandlingMetaNamespaceKeyFunc(obj any) (string, error) {
	return clientgo.DeletionHandlingMetaNamespaceKeyFunc(obj)
}

// SplitMetaNamespaceKey takes such a key apart.
func SplitMetaNamespaceKey(key string) (namespace, name string, err error) {
	return clientgo.SplitMetaNamespaceKey(key)
}

// NewObjectName joins a namespace and a name.
func NewObjectName(namespace, name string) ObjectName {
	return clientgo.NewObjectName(namespace, name)
}

// ParseObjectName reads what ObjectName.String wrote.
func ParseObjectName(s string) (ObjectName, error) { return clientgo.ParseObjectName(s) }

// ObjectToName gives the name of an object.
func ObjectToName(obj any) (ObjectName, error) { return clientgo.ObjectToName(obj) }

// DeletionHandlingObjectToName is ObjectToName that also takes a DeletedFinalStateUnknown.
func DeletionHandlingObjectToName(obj any) (ObjectName, error) {
	return clientgo.DeletionHandlingObjectToName(obj)
}

// MetaObjectToName gives the name of an object that has metadata.
func MetaObjectToName(obj metav1.Object) ObjectName { return clientgo.MetaObjectToName(obj) }

// NamespacedNameAsObjectName turns one form of a name into the other.
func NamespacedNameAsObjectName(nn types.NamespacedName) ObjectName {
	return clientgo.NamespacedNameAsObjectName(nn)
}

// MetaNamespaceIndexFunc indexes by namespace.
func MetaNamespaceIndexFunc(obj any) ([]string, error) { return clientgo.MetaNamespaceIndexFunc(obj) }

// IndexFuncToKeyFuncAdapter makes a KeyFunc of an IndexFunc that gives one value.
func IndexFuncToKeyFuncAdapter(f IndexFunc) KeyFunc { return clientgo.IndexFuncToKeyFuncAdapter(f) }

// ListAll gives appendFn everything in a store that a selector matches.
func ListAll(store Store, selector labels.Selector, appendFn AppendFunc) error {
	return clientgo.ListAll(store, selector, appendFn)
}

// ListAllByNamespace is ListAll for one namespace, by its index where there is one.
func ListAllByNamespace(indexer Indexer, namespace string, selector labels.Selector, appendFn AppendFunc) error {
	return clientgo.ListAllByNamespace(indexer, namespace, selector, appendFn)
}

// NewGenericLister lists an indexer as runtime objects.
func NewGenericLister(indexer Indexer, resource schema.GroupResource) GenericLister {
	return clientgo.NewGenericLister(indexer, resource)
}

// NewListWatchFromClient lists and watches a resource through a REST client.
func NewListWatchFromClient(c Getter, resource, namespace string, fieldSelector fields.Selector) *ListWatch {
	return clientgo.NewListWatchFromClient(c, resource, namespace, fieldSelector)
}

// NewFilteredListWatchFromClient is NewListWatchFromClient with a function that
// changes the options of each request.
func NewFilteredListWatchFromClient(c Getter, resource, namespace string,
	optionsModifier func(options *metav1.ListOptions)) *ListWatch {
	return clientgo.NewFilteredListWatchFromClient(c, resource, namespace, optionsModifier)
}

// ToListWatcherWithWatchListSemantics lets a ListWatch say what its client says
// about WatchList. One that says nothing is listed and watched.
func ToListWatcherWithWatchListSemantics(lw *ListWatch, client any) ListerWatcher {
	return clientgo.ToListWatcherWithWatchListSemantics(lw, client)
}

// ToListerWithContext gives the form with a context.
func ToListerWithContext(l Lister) ListerWithContext { return clientgo.ToListerWithContext(l) }

// ToWatcherWithContext gives the form with a context.
func ToWatcherWithContext(w Watcher) WatcherWithContext { return clientgo.ToWatcherWithContext(w) }

// ToListerWatcherWithContext gives the form with a context.
func ToListerWatcherWithContext(lw ListerWatcher) ListerWatcherWithContext {
	return clientgo.ToListerWatcherWithContext(lw)
}

// NewRetryWithDeadline says how long to go on trying after errors of one kind.
func NewRetryWithDeadline(maxRetryDuration, minResetPeriod time.Duration, isRetryable func(error) bool,
	clock clock.Clock) RetryWithDeadline {
	return clientgo.NewRetryWithDeadline(maxRetryDuration, minResetPeriod, isRetryable, clock)
}

// WaitForCacheSync waits until all have synced; false if stopCh closed first.
func WaitForCacheSync(stopCh <-chan struct{}, cacheSyncs ...InformerSynced) bool {
	return clientgo.WaitForCacheSync(stopCh, cacheSyncs...)
}

// WaitForNamedCacheSync is WaitForCacheSync that logs what it does.
func WaitForNamedCacheSync(controllerName string, stopCh <-chan struct{}, cacheSyncs ...InformerSynced) bool {
	return clientgo.WaitForNamedCacheSync(controllerName, stopCh, cacheSyncs...)
}

// WaitForNamedCacheSyncWithContext is WaitForNamedCacheSync with the context's logger.
func WaitForNamedCacheSyncWithContext(ctx context.Context, cacheSyncs ...InformerSynced) bool {
	return clientgo.WaitForNamedCacheSyncWithContext(ctx, cacheSyncs...)
}

// IsDone reports whether a checker is done.
func IsDone(checker DoneChecker) bool { return clientgo.IsDone(checker) }

// ShutDownEventHandler removes a handler and waits for its last callback.
func ShutDownEventHandler(informer SharedInformer, handle ResourceEventHandlerRegistration) error {
	return clientgo.ShutDownEventHandler(informer, handle)
}

// NewInformerName reserves a name for the metrics of informers.
func NewInformerName(name string) (*InformerName, error) { return clientgo.NewInformerName(name) }

// ResetInformerNamesForTesting forgets all reserved names.
func ResetInformerNamesForTesting() { clientgo.ResetInformerNamesForTesting() }

// SetReflectorMetricsProvider is kept for compatibility: client-go's reflectors
// ask it for nothing, and neither do ours. See Engine for what can be measured.
func SetReflectorMetricsProvider(p MetricsProvider) { clientgo.SetReflectorMetricsProvider(p) }

// NewIntegerResourceVersionMutationCache makes client-go's MutationCache.
func NewIntegerResourceVersionMutationCache(logger klog.Logger, backingCache Store, indexer Indexer, ttl time.Duration,
	includeAdds bool) MutationCache {
	return clientgo.NewIntegerResourceVersionMutationCache(logger, backingCache, indexer, ttl, includeAdds)
}

// NewIntegerResourceVersionMutationCacheWithOptions makes client-go's MutationCache.
func NewIntegerResourceVersionMutationCacheWithOptions(logger klog.Logger, backingCache Store,
	options MutationCacheOptions) MutationCache {
	return clientgo.NewIntegerResourceVersionMutationCacheWithOptions(logger, backingCache, options)
}

// NewTypedSharedIndexInformer puts typed methods on an informer.
func NewTypedSharedIndexInformer[T Object](informer SharedIndexInformer) TypedSharedIndexInformer[T] {
	return clientgo.NewTypedSharedIndexInformer[T](informer)
}

// TypedIndexerFuncToIndexerFunc makes an IndexFunc of a typed one.
func TypedIndexerFuncToIndexerFunc[T any](f TypedIndexFunc[T]) IndexFunc {
	return clientgo.TypedIndexerFuncToIndexerFunc(f)
}

// TypedIndexersToIndexers makes Indexers of typed ones.
func TypedIndexersToIndexers[T any](indexers TypedIndexers[T]) Indexers {
	return clientgo.TypedIndexersToIndexers(indexers)
}
