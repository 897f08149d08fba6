package cache

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// indexedStore is the common part of all stores of this package: an engine store and
// client-go's index functions. Reads never wait for a writer, nor a writer for readers.
type indexedStore struct {
	read *store.Reader[any]
	// write calls f with exclusive access to the writer. f opens and commits its own batch.
	write func(f func(w *store.Writer[any]))
	// version is the resource version of the last write. As in client-go, it may
	// decrease, and a Replace sets it.
	version atomic.Pointer[string]
	// sourceVersion, if set, is used in place of version: the engine writes too.
	sourceVersion func() object.Version
	metric        GaugeMetric

	// sizes reports that object sizes are needed for a bound in bytes.
	sizes bool
	// metaKeys reports that all keys are those of MetaNamespaceKeyFunc.
	metaKeys bool

	indexers atomic.Pointer[Indexers] // copied on write
	// addIndexes adds index functions to the engine store, or none of them if a name is taken.
	addIndexes func(map[string]store.IndexFunc[any]) error
}

// newIndexedStore returns an indexedStore with an engine store of its own.
func newIndexedStore(indexers Indexers) *indexedStore {
	indexers = usable(indexers)
	var writing sync.Mutex
	var failed []error // errors of index functions; reported after the lock is released
	w, err := store.New(store.Options[any]{Indexes: engineIndexes(indexers, false),
		OnError: func(key object.Key, index string, err error) { failed = append(failed, indexError(key, index, err)) }})
	if err != nil {
		panic(fmt.Errorf("making a store: %w", err)) // usable has removed what New refuses
	}
	s := &indexedStore{read: w.Reader()}
	s.indexers.Store(&indexers)
	s.write = func(f func(w *store.Writer[any])) {
		writing.Lock()
		defer func() {
			errs := failed
			failed = nil
			writing.Unlock()
			for _, err := range errs { // without the lock: an error handler may read the store
				utilruntime.HandleError(err)
			}
		}()
		f(w)
	}
	s.addIndexes = func(add map[string]store.IndexFunc[any]) (err error) {
		s.write(func(w *store.Writer[any]) { err = w.AddIndexes(add) })
		return err
	}
	return s
}

// usable copies index functions without those that have no name or are nil. The
// constructors of client-go's API return no error, so they are logged.
func usable(indexers Indexers) Indexers {
	out := make(Indexers, len(indexers))
	for name, f := range indexers {
		if name == "" || f == nil {
			utilruntime.HandleError(fmt.Errorf("index %q is ignored: it needs a name and a function", name))
			continue
		}
		out[name] = f
	}
	return out
}

// engineIndexes converts index functions. If all keys come from the objects' metadata,
// client-go's index by namespace, which nearly every informer has, is derived from the keys.
func engineIndexes(indexers Indexers, metaKeys bool) map[string]store.IndexFunc[any] {
	out := make(map[string]store.IndexFunc[any], len(indexers))
	for name, f := range indexers {
		out[name] = store.IndexFunc[any](f)
		if metaKeys && (sameFunc(f, clientgo.MetaNamespaceIndexFunc) || sameFunc(f, MetaNamespaceIndexFunc)) {
			out[name] = store.ByNamespace[any]()
		}
	}
	return out
}

// sameFunc reports whether f is the declared function.
func sameFunc(f, declared IndexFunc) bool {
	return reflect.ValueOf(f).Pointer() == reflect.ValueOf(declared).Pointer()
}

func indexError(key object.Key, index string, err error) error {
	return fmt.Errorf("indexing %q by %q: %w; the object is stored but missing from this index", key, index, err)
}

// versionOf returns the resource version of an object with metadata.
func versionOf(obj any) (string, bool) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return "", false
	}
	return m.GetResourceVersion(), true
}

func (s *indexedStore) item(key string, obj any) object.Item[any] {
	it := object.Item[any]{Key: object.Key(key), Value: obj}
	if s.sizes {
		it.Size = sizeOf(obj)
	}
	return it
}

// reached records the version of the last write.
func (s *indexedStore) reached(rv string) {
	s.version.Store(&rv)
	gaugeVersion(s.metric, rv)
}

func (s *indexedStore) put(key string, obj any) {
	s.write(func(w *store.Writer[any]) {
		w.Begin()
		w.Put(s.item(key, obj))
		w.Commit()
		if rv, ok := versionOf(obj); ok {
			s.reached(rv)
		}
	})
}

// drop removes a key. last, if it is not nil, is the last state of the object, whose
// version is recorded.
func (s *indexedStore) drop(key string, last any) {
	s.write(func(w *store.Writer[any]) {
		w.Begin()
		w.Delete(object.Key(key), "")
		w.Commit()
		if last == nil {
			return
		}
		if rv, ok := versionOf(last); ok {
			s.reached(rv)
		}
	})
}

// keyedObject is an object with its key.
type keyedObject struct {
	key string
	obj any
}

// replace replaces all objects by items. Of two items with the same key the later is stored.
func (s *indexedStore) replace(items []keyedObject, rv string) {
	s.write(func(w *store.Writer[any]) {
		if w.ListOpen() {
			s.replaceDuringList(w, items)
			s.reached(rv)
			return
		}
		w.BeginReplace()
		for _, it := range items {
			w.Stage(s.item(it.key, it.obj))
		}
		w.CommitReplace("", nil)
		s.reached(rv)
	})
}

// replaceDuringList is replace while the informer's own list is in progress. It uses a batch, because the writer
// supports one list at a time.
func (s *indexedStore) replaceDuringList(w *store.Writer[any], items []keyedObject) {
	keep := make(map[object.Key]bool, len(items))
	for _, it := range items {
		keep[object.Key(it.key)] = true
	}
	var deleted []object.Key
	for key := range w.Reader().Snapshot().All() {
		if !keep[key] {
			deleted = append(deleted, key)
		}
	}
	w.Begin()
	for _, key := range deleted {
		w.Delete(key, "")
	}
	for _, it := range items {
		w.Put(s.item(it.key, it.obj))
	}
	w.Commit()
}

// transact applies several writes atomically.
func (s *indexedStore) transact(writes []ThreadSafeStoreTransaction) {
	if len(writes) == 0 {
		return
	}
	s.write(func(w *store.Writer[any]) {
		w.Begin()
		for i, t := range writes {
			if i%store.Together == 0 {
				fetch(w, writes[i:min(i+store.Together, len(writes))])
			}
			switch t.Type {
			case TransactionTypeAdd, TransactionTypeUpdate:
				w.Put(s.item(t.Key, t.Object))
			case TransactionTypeDelete:
				w.Delete(object.Key(t.Key), "")
			}
		}
		w.Commit()
		if rv, ok := versionOf(writes[len(writes)-1].Object); ok {
			s.reached(rv)
		}
	})
}

// fetch makes the store prefetch the entries that are about to change.
func fetch(w *store.Writer[any], writes []ThreadSafeStoreTransaction) {
	var keys [store.Together]object.Key
	for i := range writes {
		keys[i] = object.Key(writes[i].Key)
	}
	w.Fetch(keys[:len(writes)])
}

// GetIndexers returns the index functions by name.
func (s *indexedStore) GetIndexers() Indexers {
	return maps.Clone(*s.indexers.Load())
}

// AddIndexers adds index functions, all or none. Stored objects are indexed before it
// returns.
func (s *indexedStore) AddIndexers(add Indexers) error {
	have := *s.indexers.Load()
	for _, name := range slices.Sorted(maps.Keys(add)) {
		if _, exists := have[name]; exists {
			return fmt.Errorf("indexer conflict: index %q already exists; choose another name", name)
		}
		if add[name] == nil {
			return fmt.Errorf("adding index %q: its function is nil", name)
		}
	}
	if err := s.addIndexes(engineIndexes(add, s.metaKeys)); err != nil {
		return err
	}
	for { // without a lock: adding waits for the writer, and functions that the writer calls may read the indexes
		have := s.indexers.Load()
		all := maps.Clone(*have)
		maps.Copy(all, add)
		if s.indexers.CompareAndSwap(have, &all) {
			return nil
		}
	}
}
