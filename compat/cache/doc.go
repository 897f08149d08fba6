// Package cache provides client-go's tools/cache on this module's engine. Existing
// code changes one import:
//
//	import "k8s.io/client-go/tools/cache"                     // before
//	import "github.com/mirador-k8s/mirador/compat/cache"      // after
//
// or passes NewSharedIndexInformer as a constructor (controller-runtime's
// cache.Options.NewInformer), or registers an informer with a stock factory
// (factory.InformerFor(&corev1.Pod{}, …)).
//
// Interfaces and data types (Store, SharedIndexInformer, ListWatch, Delta,
// DeletedFinalStateUnknown, …) are aliases of client-go's, so that values can be
// passed both ways and type assertions in handlers still succeed. Functions that only
// compute something from their arguments are client-go's. Every constructor and
// everything that runs belongs to this module: stores, queues, reflectors,
// controllers, informers.
//
// # Same as client-go
//
//   - A list is stored atomically. Then handlers receive every deletion, as
//     DeletedFinalStateUnknown, and then the other events in the order of the list.
//   - Events are applied as they arrive: versions and UIDs are not compared.
//   - A handler receives every event, in order. A late handler first receives the
//     stored objects, marked as initial. It has synced when it has received all
//     initial objects.
//   - Resync periods are at least a second and are rounded up to a multiple of the
//     informer's period; an informer without a period has no resyncs. An unchanged
//     object in a relist is delivered only to the handlers that are being resynced.
//   - An informer runs once; a second Run logs a warning. The store stays readable
//     after the stop, and no handler can be added. Removing a handler drops its
//     backlog.
//   - A handler's panic follows utilruntime.ReallyCrash, and so does a panic caused by
//     a ListFunc, a WatchFunc, an error handler, or a nil pointer in place of a list,
//     a watch or an object: it is logged, and a relist follows after a pause.
//   - The first list asks for version "0" in pages of 500. A relist asks for the whole
//     list at a version not older than the last one seen, or for the newest list if
//     that version has expired. WatchErrorHandler is called for lists and watches that
//     could not be opened.
//   - GetIndexer().Add and similar methods write to the store, as tests of controllers
//     do, without an event. They do not wait for a list in progress, which overwrites
//     them when it is complete.
//
// # Improvements
//
//   - Reads never wait for the writer, nor the writer for readers. List and ByIndex
//     read one consistent snapshot.
//   - A late handler delays nothing else, and idle handlers need no goroutine.
//   - A transform or an index function that fails or panics is logged, counted and
//     reported to Options.OnProblem. After a failed transform the store keeps the
//     object's previous state; after a failed index function the object is stored but
//     missing from that index. A transform runs once for each object that arrives.
//   - Requests are spaced in every case, also if streams end before their bookmark. A
//     server that never sends the bookmark is listed instead. A stop ends every wait
//     at once, also for a ListFunc without a context.
//   - A resource that is not served is retried once a minute.
//   - With(Options{MaxBacklog: n}) bounds the backlog of a slow handler. Engine
//     returns the underlying informer, with Health, snapshots and history.
//
// # Differences
//
//   - A ListerWatcher that does not state its WatchList semantics is listed and
//     watched, so that a plain fake watcher syncs; client-go waits forever for the
//     bookmark. One made by ToListWatcherWithWatchListSemantics for a clientset
//     streams, as in client-go. KUBE_FEATURE_WatchListClient=true in the environment
//     makes all of them stream.
//   - Reflector is a type of this package, and so are Config and the handler types
//     that name it. SetWatchErrorHandler, a method of client-go's interface, takes a
//     handler with client-go's Reflector as its parameter; import client-go's cache as
//     well to write one. Its Reflector has a name and does nothing.
//   - DeltaFIFO and FIFO have the methods that client-go removed in 0.33: Get,
//     GetByKey, List, ListKeys and, for DeltaFIFO, AddIfNotPresent.
//   - A watch that could not be opened because the server is unavailable, or that was
//     cut off, resumes at its version; client-go relists.
//   - A shared informer reports its store's version to an InformerMetricsProvider.
//     The depth of its queue is in Health; the time that events spend in it is not
//     measured.
//   - MutationCache is client-go's, because its interface cannot be implemented
//     elsewhere.
package cache
