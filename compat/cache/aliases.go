package cache

import clientgo "k8s.io/client-go/tools/cache"

// Interfaces and data are client-go's own types, so that what is made here goes
// wherever theirs goes, and a handler that asserts obj.(DeletedFinalStateUnknown)
// still finds it.

// Stores and what they are made of.
type (
	// Store holds objects by key.
	Store = clientgo.Store
	// Indexer is a Store that finds objects by what index functions say of them.
	Indexer = clientgo.Indexer
	// ThreadSafeStore is an Indexer that is told the keys.
	ThreadSafeStore = clientgo.ThreadSafeStore
	// ThreadSafeStoreWithTransaction is a ThreadSafeStore that takes several writes as one.
	ThreadSafeStoreWithTransaction = clientgo.ThreadSafeStoreWithTransaction
	// ThreadSafeStoreTransaction is one write of several, with its key.
	ThreadSafeStoreTransaction = clientgo.ThreadSafeStoreTransaction
	// TransactionStore takes several writes as one.
	TransactionStore = clientgo.TransactionStore
	// Transaction is one write of several.
	Transaction = clientgo.Transaction
	// TransactionType says what a Transaction does.
	TransactionType = clientgo.TransactionType
	// TransactionError says which of several writes failed.
	TransactionError = clientgo.TransactionError
	// Indexers are index functions by name.
	Indexers = clientgo.Indexers
	// IndexFunc gives the values under which an object is found.
	IndexFunc = clientgo.IndexFunc
	// Indices is what NewThreadSafeStore takes for compatibility; it is not looked at.
	Indices = clientgo.Indices
	// AppendFunc takes one object of a list.
	AppendFunc = clientgo.AppendFunc
	// FakeCustomStore is a Store made of functions, for tests.
	FakeCustomStore = clientgo.FakeCustomStore
)

// What can be done in a Transaction.
const (
	TransactionTypeAdd    = clientgo.TransactionTypeAdd
	TransactionTypeUpdate = clientgo.TransactionTypeUpdate
	TransactionTypeDelete = clientgo.TransactionTypeDelete
)

// NamespaceIndex is the usual name of the index by namespace.
const NamespaceIndex = clientgo.NamespaceIndex

// Keys and names.
type (
	// KeyFunc names an object.
	KeyFunc = clientgo.KeyFunc
	// KeyError says that a KeyFunc gave no key.
	KeyError = clientgo.KeyError
	// ExplicitKey is a key where an object is expected.
	ExplicitKey = clientgo.ExplicitKey
	// ObjectName is a namespace and a name.
	ObjectName = clientgo.ObjectName
	// KeyLister lists keys.
	KeyLister = clientgo.KeyLister
	// KeyGetter finds an object by key.
	KeyGetter = clientgo.KeyGetter
	// KeyListerGetter does both.
	KeyListerGetter = clientgo.KeyListerGetter
)

// Queues and what goes through them.
type (
	// Queue is a store that is emptied from the front.
	Queue = clientgo.Queue
	// QueueWithBatch is a Queue that gives several items at once.
	QueueWithBatch = clientgo.QueueWithBatch
	// Delta is one thing that happened to an object.
	Delta = clientgo.Delta
	// Deltas is what happened to one object, oldest first.
	Deltas = clientgo.Deltas
	// DeltaType says what happened.
	DeltaType = clientgo.DeltaType
	// DeletedFinalStateUnknown stands for an object whose deletion was not seen.
	DeletedFinalStateUnknown = clientgo.DeletedFinalStateUnknown
	// ReplacedAllInfo is the object of a ReplacedAll delta.
	ReplacedAllInfo = clientgo.ReplacedAllInfo
	// SyncAllInfo is the object of a SyncAll delta.
	SyncAllInfo = clientgo.SyncAllInfo
	// BookmarkInfo is the object of a Bookmark delta.
	BookmarkInfo = clientgo.BookmarkInfo
	// TransformFunc changes an object before it is stored.
	TransformFunc = clientgo.TransformFunc
	// TransformingStore is a store that transforms what it is given.
	TransformingStore = clientgo.TransformingStore
	// PopProcessFunc processes what was popped.
	PopProcessFunc = clientgo.PopProcessFunc
	// ProcessFunc processes what a controller pops.
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
	// ErrFIFOClosed is what Pop returns from a queue that is closed and empty.
	ErrFIFOClosed = clientgo.ErrFIFOClosed
	// ErrZeroLengthDeltasObject is why empty Deltas have no key.
	ErrZeroLengthDeltasObject = clientgo.ErrZeroLengthDeltasObject
)

// Where objects come from.
type (
	// Lister lists.
	Lister = clientgo.Lister
	// Watcher watches.
	Watcher = clientgo.Watcher
	// ListerWatcher does both.
	ListerWatcher = clientgo.ListerWatcher
	// ListerWithContext lists until its context ends.
	ListerWithContext = clientgo.ListerWithContext
	// WatcherWithContext watches until its context ends.
	WatcherWithContext = clientgo.WatcherWithContext
	// ListerWatcherWithContext does both.
	ListerWatcherWithContext = clientgo.ListerWatcherWithContext
	// ListWatch is a ListerWatcher made of functions.
	ListWatch = clientgo.ListWatch
	// ListFunc lists.
	//
	//lint:ignore SA1019 existing code names it
	ListFunc = clientgo.ListFunc
	// ListWithContextFunc lists until its context ends.
	ListWithContextFunc = clientgo.ListWithContextFunc
	// WatchFunc watches.
	//
	//lint:ignore SA1019 existing code names it
	WatchFunc = clientgo.WatchFunc
	// WatchFuncWithContext watches until its context ends.
	WatchFuncWithContext = clientgo.WatchFuncWithContext
	// Getter is a REST client, as far as a ListWatch needs one.
	Getter = clientgo.Getter
	// ReflectorStore is what a Reflector writes to.
	ReflectorStore = clientgo.ReflectorStore
	// ReflectorBookmarkStore is a store that wants to know of bookmarks.
	ReflectorBookmarkStore = clientgo.ReflectorBookmarkStore
	// ResourceVersionUpdater is a store that wants to know how far a Reflector has read.
	ResourceVersionUpdater = clientgo.ResourceVersionUpdater
	// ReflectorOptions configure a Reflector.
	ReflectorOptions = clientgo.ReflectorOptions
	// VeryShortWatchError says that a watch ended at once without a word.
	VeryShortWatchError = clientgo.VeryShortWatchError
	// RetryWithDeadline says how long to go on trying.
	RetryWithDeadline = clientgo.RetryWithDeadline
	// ResourceVersionComparator compares resource versions.
	ResourceVersionComparator = clientgo.ResourceVersionComparator
)

// Controllers and informers.
type (
	// Controller runs a reflector and processes what it queues.
	Controller = clientgo.Controller
	// ShouldResyncFunc says whether a resync is due.
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
	// ResourceEventHandler is told what happens.
	ResourceEventHandler = clientgo.ResourceEventHandler
	// ResourceEventHandlerFuncs is a handler made of functions.
	ResourceEventHandlerFuncs = clientgo.ResourceEventHandlerFuncs
	// ResourceEventHandlerDetailedFuncs tells initial objects apart too.
	ResourceEventHandlerDetailedFuncs = clientgo.ResourceEventHandlerDetailedFuncs
	// FilteringResourceEventHandler passes on what a filter lets through.
	FilteringResourceEventHandler = clientgo.FilteringResourceEventHandler
	// ResourceEventHandlerRegistration is a handler's tie to an informer.
	ResourceEventHandlerRegistration = clientgo.ResourceEventHandlerRegistration
	// InformerSynced says whether a cache has synced.
	InformerSynced = clientgo.InformerSynced
	// DoneChecker can be waited for.
	DoneChecker = clientgo.DoneChecker
	// SyncResult is what a factory says about the sync of its informers.
	SyncResult = clientgo.SyncResult
	// InformerName names informers for metrics.
	InformerName = clientgo.InformerName
	// InformerNameAndResource names one informer for metrics.
	InformerNameAndResource = clientgo.InformerNameAndResource
	// GenericLister lists runtime objects.
	GenericLister = clientgo.GenericLister
	// GenericNamespaceLister lists the runtime objects of a namespace.
	GenericNamespaceLister = clientgo.GenericNamespaceLister
	// MutationDetector finds those who write to cached objects.
	MutationDetector = clientgo.MutationDetector
	// MutationCache puts the caller's own writes over a cache that lags behind. It
	// is client-go's: nobody else can implement it.
	MutationCache = clientgo.MutationCache
	// MutationCacheOptions configure a MutationCache.
	MutationCacheOptions = clientgo.MutationCacheOptions
)

// The typed forms.
type (
	// Object is what typed handlers can be written for.
	Object = clientgo.Object
	// DeletedObject is what a typed handler is told of a deletion.
	DeletedObject[T Object] = clientgo.DeletedObject[T]
	// TypedResourceEventHandler is told what happens, by type.
	TypedResourceEventHandler[T Object] = clientgo.TypedResourceEventHandler[T]
	// TypedResourceEventHandlerFuncs is a typed handler made of functions.
	TypedResourceEventHandlerFuncs[T Object] = clientgo.TypedResourceEventHandlerFuncs[T]
	// TypedResourceEventHandlerDetailedFuncs tells initial objects apart too.
	TypedResourceEventHandlerDetailedFuncs[T Object] = clientgo.TypedResourceEventHandlerDetailedFuncs[T]
	// TypedFilteringResourceEventHandler passes on what a filter lets through.
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
	// GaugeMetric goes up and down.
	GaugeMetric = clientgo.GaugeMetric
	// CounterMetric goes up.
	CounterMetric = clientgo.CounterMetric
	// SummaryMetric takes observations.
	SummaryMetric = clientgo.SummaryMetric
	// HistogramMetric takes observations.
	HistogramMetric = clientgo.HistogramMetric
)
