// Package cache is client-go's tools/cache over our engine. Existing code changes
// one import:
//
//	import "k8s.io/client-go/tools/cache"                     // before
//	import "github.com/mirador-k8s/mirador/compat/cache"      // after
//
// or hands NewSharedIndexInformer to whoever takes a constructor
// (controller-runtime's cache.Options.NewInformer), or seeds a stock factory with it
// (factory.InformerFor(&corev1.Pod{}, …)).
//
// Interfaces and data (Store, SharedIndexInformer, ListWatch, Delta,
// DeletedFinalStateUnknown, …) are aliases of client-go's, so that values go both
// ways and type assertions in handlers still hold. Functions that only compute
// something from their arguments are client-go's. Every constructor and everything
// that runs is ours: stores, queues, reflectors, controllers, informers.
//
// # The same
//
//   - A list is stored as one, then every deletion is told, as
//     DeletedFinalStateUnknown, then the rest in the order of the list.
//   - What arrives is applied as it arrives: versions and UIDs are not compared.
//   - A handler is told every event, in order; a late one first gets what is stored,
//     marked as initial. It has synced when all that was there at first was told.
//   - Resyncs: at least a second apart, rounded up to the informer's period, none
//     where the informer has none. An object listed again unchanged reaches those
//     handlers that are being resynced.
//   - One Run; a second one warns. The store stays readable after the stop. A handler
//     cannot be added then. Removing a handler drops what waits for it.
//   - A handler's panic follows utilruntime.ReallyCrash, and so does one of a
//     ListFunc, a WatchFunc or an error handler, and a list, a watch or an object
//     that is a nil pointer: it is logged, and the state is read again after a pause.
//   - Lists: version "0" and pages of 500 first, then not older than what was seen and
//     whole; the newest where that has expired. WatchErrorHandler hears of lists and
//     watches that could not be opened.
//   - GetIndexer().Add and its like write to the store, as tests of controllers do;
//     handlers are not told. They do not wait for a list that is on its way; the
//     list has the last word.
//
// # Better
//
//   - Reads never wait for the writer, nor the writer for readers; List and ByIndex
//     read one consistent snapshot.
//   - A handler that joins late stalls nobody. Handlers cost no goroutine while they
//     are idle.
//   - A transform or an index function that fails or panics is logged, counted and
//     told to Options.OnProblem. The object keeps the state it had, or is stored and
//     not found by that index. A transform is called once per object that arrives.
//   - Whatever the server does, requests are spaced: also streams that end before
//     their bookmark. One that never sends the bookmark is listed instead. A stop ends
//     every wait at once, also in a ListFunc that knows nothing of contexts.
//   - A resource that is not served is asked for once a minute and picked up again.
//   - With(Options{MaxBacklog: n}) bounds what waits for a slow handler. Engine gives
//     the informer behind: Health, snapshots, history.
//
// # Different
//
//   - A ListerWatcher that says nothing about WatchList is listed and watched, so that
//     a plain fake watcher syncs; client-go waits for its bookmark for ever. One made
//     by ToListWatcherWithWatchListSemantics for a clientset streams, as in client-go,
//     and so does any while KUBE_FEATURE_WatchListClient=true is set in the environment.
//   - Reflector is our own type, and so are Config and the handler types that name it.
//     SetWatchErrorHandler, a method of client-go's interface, takes a handler of
//     client-go's Reflector: import client-go's cache beside this one to write it. It
//     is given a Reflector that has a name and does nothing.
//   - DeltaFIFO and FIFO have the methods that client-go dropped in 0.33: Get,
//     GetByKey, List, ListKeys and, for DeltaFIFO, AddIfNotPresent.
//   - A watch that could not be opened because the server is away, or was cut off, goes
//     on where it was; client-go lists again.
//   - A shared informer shows its store's version to an InformerMetricsProvider; the
//     depth of its queue is in Health, how long an event took in it is not measured.
//   - MutationCache is client-go's: nobody else can implement it.
package cache
