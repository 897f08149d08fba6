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

// shelf is what every store of this package stands on: an engine store, which
// many read and one writes, and the index functions by client-go's names. Reads
// never wait for a writer, and a writer never for a reader.
type shelf struct {
	read *store.Reader[any]
	// write runs f alone with the writer; f opens and ends its own batch.
	write func(f func(w *store.Writer[any]))
	// version is the resource version of whatever was written last, as client-go
	// keeps it: without an order, and set back by a Replace.
	version atomic.Pointer[string]
	// sourceVersion, if set, is asked instead: somebody else writes too.
	sourceVersion func() object.Version
	metric        GaugeMetric

	// sizes says that something is bounded by the sizes of objects.
	sizes bool
	// named: the keys are those of MetaNamespaceKeyFunc, whatever is stored.
	named bool

	indexers atomic.Pointer[Indexers] // replaced, never changed
	// addIndexes adds index functions to the engine store: all, or none if one of the names is taken.
	addIndexes func(map[string]store.IndexFunc[any]) error
}

// newShelf makes a shelf with a store of its own.
func newShelf(indexers Indexers) *shelf {
	indexers = usable(indexers)
	var writing sync.Mutex
	var failed []error // what index functions said; reported when writing is released
	w, err := store.New(store.Options[any]{Indexes: engineIndexes(indexers, false),
		OnError: func(key object.Key, index string, err error) { failed = append(failed, indexError(key, index, err)) }})
	if err != nil {
		// usable has left out whatever New refuses.
		panic(fmt.Errorf("making a store: %w", err))
	}
	s := &shelf{read: w.Reader()}
	s.indexers.Store(&indexers)
	s.write = func(f func(w *store.Writer[any])) {
		writing.Lock()
		defer func() {
			errs := failed
			failed = nil
			writing.Unlock()
			for _, err := range errs { // without the lock: what is called may read the store
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

// usable copies index functions and leaves out those that cannot be called. The
// constructors of client-go's API have no error to return, so it is logged.
func usable(indexers Indexers) Indexers {
	out := make(Indexers, len(indexers))
	for name, f := range indexers {
		if name == "" || f == nil {
			utilruntime.HandleError(fmt.Errorf("index %q has no name or no function and is left out; give both", name))
			continue
		}
		out[name] = f
	}
	return out
}

// engineIndexes gives the engine's form of index functions. Where the objects are named by their
// metadata, client-go's own index by namespace, which nearly every informer has, is taken
// from the keys.
func engineIndexes(indexers Indexers, named bool) map[string]store.IndexFunc[any] {
	out := make(map[string]store.IndexFunc[any], len(indexers))
	for name, f := range indexers {
		out[name] = store.IndexFunc[any](f)
		if named && (sameFunc(f, clientgo.MetaNamespaceIndexFunc) || sameFunc(f, MetaNamespaceIndexFunc)) {
			out[name] = store.ByNamespace[any]()
		}
	}
	return out
}

// sameFunc reports whether f is a function that is declared somewhere.
func sameFunc(f, declared IndexFunc) bool {
	return reflect.ValueOf(f).Pointer() == reflect.ValueOf(declared).Pointer()
}

func indexError(key object.Key, index string, err error) error {
	return fmt.Errorf("indexing %q by %q: %w; the object is stored but not found by this index", key, index, err)
}

// versionOf is the resource version of an object that has one.
func versionOf(obj any) (string, bool) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return "", false
	}
	return m.GetResourceVersion(), true
}

func (s *shelf) item(key string, obj any) object.Item[any] {
	it := object.Item[any]{Key: object.Key(key), Value: obj}
	if s.sizes {
		it.Size = sizeOf(obj)
	}
	return it
}

// reached notes the version of the last write.
func (s *shelf) reached(rv string) {
	s.version.Store(&rv)
	gaugeVersion(s.metric, rv)
}

func (s *shelf) put(key string, obj any) {
	s.write(func(w *store.Writer[any]) {
		w.Begin()
		w.Put(s.item(key, obj))
		w.Commit()
		if rv, ok := versionOf(obj); ok {
			s.reached(rv)
		}
	})
}

// drop removes a key. last, if it is not nil, is the object as it was deleted, and
// its version counts.
func (s *shelf) drop(key string, last any) {
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

// keyed is an object with its key.
type keyed struct {
	key string
	obj any
}

// replace makes items all there is; of two with one key the later counts.
func (s *shelf) replace(items []keyed, rv string) {
	s.write(func(w *store.Writer[any]) {
		if w.ListOpen() {
			s.replaceBeside(w, items)
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

// replaceBeside is replace while the informer's own list is on its way: as a batch, because there is one list at a
// time.
func (s *shelf) replaceBeside(w *store.Writer[any], items []keyed) {
	keep := make(map[object.Key]bool, len(items))
	for _, it := range items {
		keep[object.Key(it.key)] = true
	}
	var gone []object.Key
	for key := range w.Reader().Snapshot().All() {
		if !keep[key] {
			gone = append(gone, key)
		}
	}
	w.Begin()
	for _, key := range gone {
		w.Delete(key, "")
	}
	for _, it := range items {
		w.Put(s.item(it.key, it.obj))
	}
	w.Commit()
}

// transact applies several writes as one: no reader sees some of them only.
func (s *shelf) transact(writes []ThreadSafeStoreTransaction) {
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

// fetch lets the store look for what is about to change.
func fetch(w *store.Writer[any], writes []ThreadSafeStoreTransaction) {
	var keys [store.Together]object.Key
	for i := range writes {
		keys[i] = object.Key(writes[i].Key)
	}
	w.Fetch(keys[:len(writes)])
}

// GetIndexers gives the index functions by name.
func (s *shelf) GetIndexers() Indexers {
	return maps.Clone(*s.indexers.Load())
}

// AddIndexers adds index functions, all or none; what is stored is indexed before
// it returns.
func (s *shelf) AddIndexers(add Indexers) error {
	have := *s.indexers.Load()
	for _, name := range slices.Sorted(maps.Keys(add)) {
		if _, exists := have[name]; exists {
			return fmt.Errorf("indexer conflict: there is an index %q already; choose another name", name)
		}
		if add[name] == nil {
			return fmt.Errorf("adding index %q: its function is nil", name)
		}
	}
	if err := s.addIndexes(engineIndexes(add, s.named)); err != nil {
		return err
	}
	for { // no lock: adding waits for the writer, and what the writer reports may ask for the indexes
		have := s.indexers.Load()
		all := maps.Clone(*have)
		maps.Copy(all, add)
		if s.indexers.CompareAndSwap(have, &all) {
			return nil
		}
	}
}
