package cache

import "fmt"

// keyedStore is an Indexer that finds the keys of its objects itself.
type keyedStore struct {
	*shelf
	key       KeyFunc
	transform TransformFunc
}

var (
	_ Indexer          = &keyedStore{}
	_ TransactionStore = &keyedStore{}
)

// StoreOption configures NewStore and NewIndexer.
type StoreOption = func(*keyedStore)

// WithTransformer changes every object before it is stored.
func WithTransformer(transformer TransformFunc) StoreOption {
	return func(s *keyedStore) { s.transform = transformer }
}

// WithStoreMetrics shows the store's version in a metric.
func WithStoreMetrics(id InformerNameAndResource, p InformerMetricsProvider) StoreOption {
	return func(s *keyedStore) { s.metric = storeGauge(id, p) }
}

// NewStore makes a store without indexes.
func NewStore(keyFunc KeyFunc, opts ...StoreOption) Store {
	return NewIndexer(keyFunc, nil, opts...)
}

// NewIndexer makes a store with indexes. A failing index function leaves its
// object stored and out of that index, and is logged.
func NewIndexer(keyFunc KeyFunc, indexers Indexers, opts ...StoreOption) Indexer {
	s := &keyedStore{shelf: newShelf(indexers), key: keyFunc}
	for _, o := range opts {
		o(s)
	}
	return s
}

// named finds an object's key, then transforms it.
func (s *keyedStore) named(obj any) (keyed, error) {
	key, err := s.key(obj)
	if err != nil {
		return keyed{}, KeyError{Obj: obj, Err: err}
	}
	if s.transform != nil {
		if obj, err = s.transform(obj); err != nil {
			return keyed{}, fmt.Errorf("transforming %q: %w", key, err)
		}
	}
	return keyed{key, obj}, nil
}

func (s *keyedStore) Add(obj any) error {
	it, err := s.named(obj)
	if err != nil {
		return err
	}
	s.put(it.key, it.obj)
	return nil
}

func (s *keyedStore) Update(obj any) error { return s.Add(obj) }

func (s *keyedStore) Delete(obj any) error {
	key, err := s.key(obj)
	if err != nil {
		return KeyError{Obj: obj, Err: err}
	}
	s.drop(key, obj)
	return nil
}

func (s *keyedStore) Get(obj any) (item any, exists bool, err error) {
	key, err := s.key(obj)
	if err != nil {
		return nil, false, KeyError{Obj: obj, Err: err}
	}
	return s.GetByKey(key)
}

func (s *keyedStore) GetByKey(key string) (item any, exists bool, err error) {
	item, exists = s.get(key)
	return item, exists, nil
}

func (s *keyedStore) Replace(list []any, resourceVersion string) error {
	items := make([]keyed, len(list))
	for i, obj := range list {
		it, err := s.named(obj)
		if err != nil {
			return err
		}
		items[i] = it
	}
	s.replace(items, resourceVersion)
	return nil
}

// Transaction applies what it can of several writes, as one; the error tells of
// those whose key could not be found.
func (s *keyedStore) Transaction(writes ...Transaction) *TransactionError {
	var errs []error
	done := make([]int, 0, len(writes))
	withKeys := make([]ThreadSafeStoreTransaction, 0, len(writes))
	for i, t := range writes {
		key, err := s.key(t.Object)
		if err != nil {
			errs = append(errs, KeyError{Obj: t.Object, Err: err})
			continue
		}
		done = append(done, i)
		withKeys = append(withKeys, ThreadSafeStoreTransaction{Transaction: t, Key: key})
	}
	s.transact(withKeys)
	if len(errs) == 0 {
		return nil
	}
	return &TransactionError{SuccessfulIndices: done, TotalTransactions: len(writes), Errors: errs}
}
