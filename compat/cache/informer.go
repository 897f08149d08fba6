package cache

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
)

// NewInformerWithOptions returns a store and the controller that fills it and calls
// one handler. The controller waits for the handler. The store is read-only for callers.
func NewInformerWithOptions(options InformerOptions) (Store, Controller) {
	return newInformer(options)
}

// NewInformer is NewInformerWithOptions for the usual case.
func NewInformer(lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration,
	h ResourceEventHandler) (Store, Controller) {
	return newInformer(InformerOptions{ListerWatcher: lw, ObjectType: objType, ResyncPeriod: resyncPeriod, Handler: h})
}

// NewIndexerInformer is NewInformer with indexes.
func NewIndexerInformer(lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration, h ResourceEventHandler,
	indexers Indexers) (Indexer, Controller) {
	return newInformer(InformerOptions{ListerWatcher: lw, ObjectType: objType, ResyncPeriod: resyncPeriod, Handler: h,
		Indexers: indexers})
}

// NewTransformingInformer is NewInformer with a transform.
func NewTransformingInformer(lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration,
	h ResourceEventHandler, transformer TransformFunc) (Store, Controller) {
	return newInformer(InformerOptions{ListerWatcher: lw, ObjectType: objType, ResyncPeriod: resyncPeriod, Handler: h,
		Transform: transformer})
}

// NewTransformingIndexerInformer is NewInformer with indexes and a transform.
func NewTransformingIndexerInformer(lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration,
	h ResourceEventHandler, indexers Indexers, transformer TransformFunc) (Indexer, Controller) {
	return newInformer(InformerOptions{ListerWatcher: lw, ObjectType: objType, ResyncPeriod: resyncPeriod, Handler: h,
		Indexers: indexers, Transform: transformer})
}

func newInformer(o InformerOptions) (Indexer, Controller) {
	store := NewIndexer(DeletionHandlingMetaNamespaceKeyFunc, o.Indexers,
		WithStoreMetrics(o.Identifier, o.InformerMetricsProvider))
	logger := klog.Background()
	if o.Logger != nil {
		logger = *o.Logger
	}
	queue := NewRealFIFOWithOptions(RealFIFOOptions{
		Logger:                &logger,
		Name:                  "RealFIFO " + describeType(exampleOf(o.ObjectType)),
		Transformer:           o.Transform,
		AtomicEvents:          true,
		UnlockWhileProcessing: true,
		EmitDeltaTypeBookmark: true,
		Identifier:            o.Identifier,
		MetricsProvider:       o.InformerMetricsProvider,
	})
	h := o.Handler
	if h == nil {
		h = ResourceEventHandlerFuncs{}
	}
	a := applier{logger: queue.logger, store: store, handler: h, key: DeletionHandlingMetaNamespaceKeyFunc}
	return store, New(&Config{
		Queue:             queue,
		ListerWatcher:     o.ListerWatcher,
		ObjectType:        o.ObjectType,
		ObjectDescription: describeType(exampleOf(o.ObjectType)),
		FullResyncPeriod:  o.ResyncPeriod,
		MinWatchTimeout:   o.MinWatchTimeout,
		Process:           a.process,
		ProcessBatch:      a.processBatch,
	})
}
