package cache

import "fmt"

// keyedStore is an Indexer with a KeyFunc.
type keyedStore struct {
	*indexedStore
	key       KeyFunc
	transform TransformFunc
}

var (
	_ Indexer          = &keyedStore{}
	_ TransactionStore = &keyedStore{}
)

// StoreOption configures NewStore and NewIndexer.
type StoreOption = func(*keyedStore)

// WithTransformer sets a transform that is applied to every object before it is stored.
func WithTransformer(transformer TransformFunc) StoreOption {
	return func(s *keyedStore) { s.transform = transformer }
}

// WithStoreMetrics reports the store's version in a metric.
func WithStoreMetrics(id InformerNameAndResource, p InformerMetricsProvider) StoreOption {
	return func(s *keyedStore) { s.metric = storeGauge(id, p) }
}

// NewStore returns a store without indexes.
func NewStore(keyFunc KeyFunc, opts ...StoreOption) Store {
	return NewIndexer(keyFunc, nil, opts...)
}

// NewIndexer returns a store with indexes. If an index function fails, the error is
// logged, and the object is stored but missing from that index.
func NewIndexer(keyFunc KeyFunc, indexers Indexers, opts ...StoreOption) Indexer {
	s := &keyedStore{indexedStore: newIndexedStore(indexers), key: keyFunc}
	for _, o := range opts {
		o(s)
	}
	return s
}

// prepare returns an object's key and the transformed object.
func (s *keyedStore) prepare(obj any) (keyedObject, error) {
	key, err := s.key(obj)
	if err != nil {
		return keyedObject{}, KeyError{Obj: obj, Err: err}
	}
	if s.transform != nil {
		if obj, err = s.transform(obj); err != nil {
			return keyedObject{}, fmt.Errorf("transforming %q: %w", key, err)
		}
	}
	return keyedObject{key, obj}, nil
}

func (s *keyedStore) Add(obj any) error {
	it, err := s.prepare(obj)
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
	items := make([]keyedObject, len(list))
	for i, obj := range list {
		it, err := s.prepare(obj)
		if err != nil {
			return err
		}
		items[i] = it
	}
	s.replace(items, resourceVersion)
	return nil
}

// Transaction applies several writes atomically, except for those of objects without a
// key, which the error reports.
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
