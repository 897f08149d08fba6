package cache

import clientgo "k8s.io/client-go/tools/cache"

// Interfaces and data types are aliases of client-go's, so that values of this
// package can be used wherever client-go's can, and a handler's type assertion
// obj.(DeletedFinalStateUnknown) still succeeds.

// Stores and their parts.
type (
	// Store holds objects by key.
	Store = clientgo.Store
	// Indexer is a Store with indexes.
	Indexer = clientgo.Indexer
	// ThreadSafeStore is an Indexer whose callers pass the keys.
	ThreadSafeStore = clientgo.ThreadSafeStore
	// ThreadSafeStoreWithTransaction is a ThreadSafeStore that applies several writes atomically.
	ThreadSafeStoreWithTransaction = clientgo.ThreadSafeStoreWithTransaction
	// ThreadSafeStoreTransaction is one write of a transaction, with its key.
	ThreadSafeStoreTransaction = clientgo.ThreadSafeStoreTransaction
	// TransactionStore applies several writes atomically.
	TransactionStore = clientgo.TransactionStore
	// Transaction is one write of a transaction.
	Transaction = clientgo.Transaction
	// TransactionType is the kind of a write: add, update or delete.
	TransactionType = clientgo.TransactionType
	// TransactionError reports which writes of a transaction failed.
	TransactionError = clientgo.TransactionError
	// Indexers are index functions by name.
	Indexers = clientgo.Indexers
	// IndexFunc returns the values under which an object is found.
	IndexFunc = clientgo.IndexFunc
	// Indices is an argument of NewThreadSafeStore, which ignores it.
	Indices = clientgo.Indices
	// AppendFunc receives one object of a list.
	AppendFunc = clientgo.AppendFunc
	// FakeCustomStore is a Store made of functions, for tests.
	FakeCustomStore = clientgo.FakeCustomStore
)

// The kinds of writes in a transaction.
const (
	TransactionTypeAdd    = clientgo.TransactionTypeAdd
	TransactionTypeUpdate = clientgo.TransactionTypeUpdate
	TransactionTypeDelete = clientgo.TransactionTypeDelete
)

// NamespaceIndex is the usual name of the index by namespace.
const NamespaceIndex = clientgo.NamespaceIndex

// Keys and names.
type (
	// KeyFunc returns the key of an object.
	KeyFunc = clientgo.KeyFunc
	// KeyError is the error of a KeyFunc, with its object.
	KeyError = clientgo.KeyError
	// ExplicitKey is a key where an object is expected.
	ExplicitKey = clientgo.ExplicitKey
	// ObjectName is a namespace and a name.
	ObjectName = clientgo.ObjectName
	// KeyLister lists keys.
	KeyLister = clientgo.KeyLister
	// KeyGetter finds an object by key.
	KeyGetter = clientgo.KeyGetter
	// KeyListerGetter is a KeyLister and a KeyGetter.
	KeyListerGetter = clientgo.KeyListerGetter
)

// Queues and their contents.
type (
	// Queue is a store whose items are popped in order.
	Queue = clientgo.Queue
	// QueueWithBatch is a Queue that can pop several items at once.
	QueueWithBatch = clientgo.QueueWithBatch
	// Delta is one change of an object.
	Delta = clientgo.Delta
	// Deltas are the changes of one object, oldest first.
	Deltas = clientgo.Deltas
	// DeltaType is the kind of a change.
	DeltaType = clientgo.DeltaType
	// DeletedFinalStateUnknown represents an object whose deletion was missed.
	DeletedFinalStateUnknown = clientgo.DeletedFinalStateUnknown
	// ReplacedAllInfo is the object of a ReplacedAll delta.
	ReplacedAllInfo = clientgo.ReplacedAllInfo
	// SyncAllInfo is the object of a SyncAll delta.
	SyncAllInfo = clientgo.SyncAllInfo
	// BookmarkInfo is the object of a Bookmark delta.
	BookmarkInfo = clientgo.BookmarkInfo
	// TransformFunc changes an object before it is stored.
	TransformFunc = clientgo.TransformFunc
	// TransformingStore is a store that transforms the objects that it receives.
	TransformingStore = clientgo.TransformingStore
	// PopProcessFunc processes an item that was popped.
	PopProcessFunc = clientgo.PopProcessFunc
	// ProcessFunc processes an item that a controller popped.
	ProcessFunc = clientgo.ProcessFunc
	// ProcessBatchFunc processes several deltas of different objects.
	ProcessBatchFunc = clientgo.ProcessBatchFunc
	// DeltaFIFOOptions configure a DeltaFIFO.
	DeltaFIFOOptions = clientgo.DeltaFIFOOptions
	// RealFIFOOptions configure a RealFIFO.
	RealFIFOOptions = clientgo.RealFIFOOptions
	// LessFunc orders the objects of a Heap.
	LessFunc = clientgo.LessFunc
)

// The types of deltas.
const (
	Added       = clientgo.Added
	Updated     = clientgo.Updated
	Deleted     = clientgo.Deleted
	Replaced    = clientgo.Replaced
	Sync        = clientgo.Sync
	ReplacedAll = clientgo.ReplacedAll
	SyncAll     = clientgo.SyncAll
	Bookmark    = clientgo.Bookmark
)

var (
	// ErrFIFOClosed is the error of Pop on a queue that is closed and empty.
	ErrFIFOClosed = clientgo.ErrFIFOClosed
	// ErrZeroLengthDeltasObject is the error for the key of empty Deltas.
	ErrZeroLengthDeltasObject = clientgo.ErrZeroLengthDeltasObject
)

// Sources of objects.
type (
	// Lister lists.
	Lister = clientgo.Lister
	// Watcher watches.
	Watcher = clientgo.Watcher
	// ListerWatcher lists and watches.
	ListerWatcher = clientgo.ListerWatcher
	// ListerWithContext is a Lister with a context.
	ListerWithContext = clientgo.ListerWithContext
	// WatcherWithContext is a Watcher with a context.
	WatcherWithContext = clientgo.WatcherWithContext
	// ListerWatcherWithContext is a ListerWatcher with a context.
	ListerWatcherWithContext = clientgo.ListerWatcherWithContext
	// ListWatch is a ListerWatcher made of functions.
	ListWatch = clientgo.ListWatch
	// ListFunc lists.
	//
	//lint:ignore SA1019 existing code uses it
	ListFunc = clientgo.ListFunc
	// ListWithContextFunc lists until its context ends.
	ListWithContextFunc = clientgo.ListWithContextFunc
	// WatchFunc watches.
	//
	//lint:ignore SA1019 existing code uses it
	WatchFunc = clientgo.WatchFunc
	// WatchFuncWithContext watches until its context ends.
	WatchFuncWithContext = clientgo.WatchFuncWithContext
	// Getter is the part of a REST client that a ListWatch needs.
	Getter = clientgo.Getter
	// ReflectorStore is the store that a Reflector writes to.
	ReflectorStore = clientgo.ReflectorStore
	// ReflectorBookmarkStore is a store that receives bookmarks.
	ReflectorBookmarkStore = clientgo.ReflectorBookmarkStore
	// ResourceVersionUpdater is a store that receives the version that a Reflector has reached.
	ResourceVersionUpdater = clientgo.ResourceVersionUpdater
	// ReflectorOptions configure a Reflector.
	ReflectorOptions = clientgo.ReflectorOptions
	// VeryShortWatchError reports a watch that ended at once and without an event.
	VeryShortWatchError = clientgo.VeryShortWatchError
	// RetryWithDeadline decides how long to retry.
	RetryWithDeadline = clientgo.RetryWithDeadline
	// ResourceVersionComparator compares resource versions.
	ResourceVersionComparator = clientgo.ResourceVersionComparator
)

// Controllers and informers.
type (
	// Controller runs a reflector and processes the items that it queues.
	Controller = clientgo.Controller
	// ShouldResyncFunc reports whether a resync is due.
	ShouldResyncFunc = clientgo.ShouldResyncFunc
	// InformerOptions configure NewInformerWithOptions.
	InformerOptions = clientgo.InformerOptions
	// SharedInformer is a cache with many handlers.
	SharedInformer = clientgo.SharedInformer
	// SharedIndexInformer is a SharedInformer with indexes.
	SharedIndexInformer = clientgo.SharedIndexInformer
	// SharedIndexInformerOptions configure a SharedIndexInformer.
	SharedIndexInformerOptions = clientgo.SharedIndexInformerOptions
	// HandlerOptions configure a handler.
	HandlerOptions = clientgo.HandlerOptions
	// ResourceEventHandler receives events.
	ResourceEventHandler = clientgo.ResourceEventHandler
	// ResourceEventHandlerFuncs is a handler made of functions.
	ResourceEventHandlerFuncs = clientgo.ResourceEventHandlerFuncs
	// ResourceEventHandlerDetailedFuncs is ResourceEventHandlerFuncs whose AddFunc learns whether an object is initial.
	ResourceEventHandlerDetailedFuncs = clientgo.ResourceEventHandlerDetailedFuncs
	// FilteringResourceEventHandler passes on the events of the objects that match a filter.
	FilteringResourceEventHandler = clientgo.FilteringResourceEventHandler
	// ResourceEventHandlerRegistration is the registration of a handler with an informer.
	ResourceEventHandlerRegistration = clientgo.ResourceEventHandlerRegistration
	// InformerSynced reports whether a cache has synced.
	InformerSynced = clientgo.InformerSynced
	// DoneChecker is something that is done at some time, and can be waited for.
	DoneChecker = clientgo.DoneChecker
	// SyncResult tells which informers of a factory have synced.
	SyncResult = clientgo.SyncResult
	// InformerName names informers for metrics.
	InformerName = clientgo.InformerName
	// InformerNameAndResource names one informer for metrics.
	InformerNameAndResource = clientgo.InformerNameAndResource
	// GenericLister lists runtime objects.
	GenericLister = clientgo.GenericLister
	// GenericNamespaceLister lists the runtime objects of a namespace.
	GenericNamespaceLister = clientgo.GenericNamespaceLister
	// MutationDetector detects writes to cached objects.
	MutationDetector = clientgo.MutationDetector
	// MutationCache puts the caller's own writes over a cache that has not received
	// them yet. It is client-go's: its interface cannot be implemented elsewhere.
	MutationCache = clientgo.MutationCache
	// MutationCacheOptions configure a MutationCache.
	MutationCacheOptions = clientgo.MutationCacheOptions
)

// Typed variants.
type (
	// Object is the constraint of typed handlers.
	Object = clientgo.Object
	// DeletedObject is the argument of a typed handler's delete callback.
	DeletedObject[T Object] = clientgo.DeletedObject[T]
	// TypedResourceEventHandler receives the events of objects of one type.
	TypedResourceEventHandler[T Object] = clientgo.TypedResourceEventHandler[T]
	// TypedResourceEventHandlerFuncs is a typed handler made of functions.
	TypedResourceEventHandlerFuncs[T Object] = clientgo.TypedResourceEventHandlerFuncs[T]
	// TypedResourceEventHandlerDetailedFuncs is TypedResourceEventHandlerFuncs whose AddFunc learns whether an object
	// is initial.
	TypedResourceEventHandlerDetailedFuncs[T Object] = clientgo.TypedResourceEventHandlerDetailedFuncs[T]
	// TypedFilteringResourceEventHandler passes on the events of the objects that match a filter.
	TypedFilteringResourceEventHandler[T Object] = clientgo.TypedFilteringResourceEventHandler[T]
	// TypedSharedIndexInformer is a SharedIndexInformer with typed methods.
	TypedSharedIndexInformer[T Object] = clientgo.TypedSharedIndexInformer[T]
	// TypedIndexer is an Indexer with typed methods.
	TypedIndexer[T any] = clientgo.TypedIndexer[T]
	// TypedIndexFunc is a typed IndexFunc.
	TypedIndexFunc[T any] = clientgo.TypedIndexFunc[T]
	// TypedIndexers are typed index functions by name.
	TypedIndexers[T any] = clientgo.TypedIndexers[T]
)

// Metrics, as client-go names them.
type (
	// MetricsProvider makes the metrics of reflectors.
	MetricsProvider = clientgo.MetricsProvider
	// InformerMetricsProvider makes the metrics of queues and stores.
	InformerMetricsProvider = clientgo.InformerMetricsProvider
	// GaugeMetric is a value that goes up and down.
	GaugeMetric = clientgo.GaugeMetric
	// CounterMetric is a value that only goes up.
	CounterMetric = clientgo.CounterMetric
	// SummaryMetric summarizes observations.
	SummaryMetric = clientgo.SummaryMetric
	// HistogramMetric counts observations in buckets.
	HistogramMetric = clientgo.HistogramMetric
)
