package cache

// threadSafeStore is a ThreadSafeStore over the engine's store.
type threadSafeStore struct{ *shelf }

var _ ThreadSafeStoreWithTransaction = threadSafeStore{}

// ThreadSafeStoreOption configures NewThreadSafeStore.
type ThreadSafeStoreOption = func(*threadSafeStore)

// WithThreadSafeStoreMetrics shows the store's version in a metric.
func WithThreadSafeStoreMetrics(id InformerNameAndResource, p InformerMetricsProvider) ThreadSafeStoreOption {
	return func(s *threadSafeStore) { s.metric = storeGauge(id, p) }
}

// NewThreadSafeStore makes a store that is told the keys of its objects. Indices
// are built anew whatever is given for them.
func NewThreadSafeStore(indexers Indexers, _ Indices, opts ...ThreadSafeStoreOption) ThreadSafeStore {
	s := &threadSafeStore{newShelf(indexers)}
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
	list := make([]keyed, 0, len(items))
	for key, obj := range items {
		list = append(list, keyed{key, obj})
	}
	s.replace(list, resourceVersion)
}
