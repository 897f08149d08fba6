package cache

// threadSafeStore is a ThreadSafeStore on the engine's store.
type threadSafeStore struct{ *indexedStore }

var _ ThreadSafeStoreWithTransaction = threadSafeStore{}

// ThreadSafeStoreOption configures NewThreadSafeStore.
type ThreadSafeStoreOption = func(*threadSafeStore)

// WithThreadSafeStoreMetrics reports the store's version in a metric.
func WithThreadSafeStoreMetrics(id InformerNameAndResource, p InformerMetricsProvider) ThreadSafeStoreOption {
	return func(s *threadSafeStore) { s.metric = storeGauge(id, p) }
}

// NewThreadSafeStore returns a store whose callers pass the keys. It ignores the
// Indices argument and builds its own.
func NewThreadSafeStore(indexers Indexers, _ Indices, opts ...ThreadSafeStoreOption) ThreadSafeStore {
	s := &threadSafeStore{newIndexedStore(indexers)}
	for _, o := range opts {
		o(s)
	}
	return *s
}

func (s threadSafeStore) Add(key string, obj any)                     { s.put(key, obj) }
func (s threadSafeStore) Update(key string, obj any)                  { s.put(key, obj) }
func (s threadSafeStore) Delete(key string)                           { s.drop(key, nil) }
func (s threadSafeStore) DeleteWithObject(key string, obj any)        { s.drop(key, obj) }
func (s threadSafeStore) Get(key string) (item any, exists bool)      { return s.get(key) }
func (s threadSafeStore) Transaction(w ...ThreadSafeStoreTransaction) { s.transact(w) }

func (s threadSafeStore) Replace(items map[string]any, resourceVersion string) {
	list := make([]keyedObject, 0, len(items))
	for key, obj := range items {
		list = append(list, keyedObject{key, obj})
	}
	s.replace(list, resourceVersion)
}
