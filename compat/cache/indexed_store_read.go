package cache

import (
	"fmt"
	"slices"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

func (s *indexedStore) get(key string) (any, bool) { return s.read.Get(object.Key(key)) }

// List returns all objects, in no particular order.
func (s *indexedStore) List() []any {
	snap := s.read.Snapshot()
	return slices.AppendSeq(make([]any, 0, snap.Len()), snap.Objects())
}

// ListKeys returns all keys, in no particular order.
func (s *indexedStore) ListKeys() []string {
	snap := s.read.Snapshot()
	keys := make([]string, 0, snap.Len())
	for key := range snap.All() {
		keys = append(keys, string(key))
	}
	return keys
}

// LastStoreSyncResourceVersion returns the resource version of the last write.
func (s *indexedStore) LastStoreSyncResourceVersion() string {
	if s.sourceVersion != nil {
		return string(s.sourceVersion())
	}
	if v := s.version.Load(); v != nil {
		return *v
	}
	return ""
}

// Bookmark records a resource version.
func (s *indexedStore) Bookmark(rv string) { s.reached(rv) }

// Resync does nothing.
func (s *indexedStore) Resync() error { return nil }

// noIndex has client-go's text, which callers compare.
func noIndex(name string) error { return fmt.Errorf("Index with name %s does not exist", name) }

// index returns an index of the current snapshot.
func (s *indexedStore) index(name string) (store.Index[any], error) {
	x, err := s.read.Snapshot().Index(name)
	if err != nil {
		return x, noIndex(name)
	}
	return x, nil
}

// Index returns the objects that share a value of an index with obj.
func (s *indexedStore) Index(name string, obj any) ([]any, error) {
	f := (*s.indexers.Load())[name]
	if f == nil {
		return nil, noIndex(name)
	}
	values, err := f(obj)
	if err != nil {
		return nil, err
	}
	x, err := s.index(name)
	if err != nil {
		return nil, err
	}
	if len(values) == 1 {
		return collect(x, values[0]), nil
	}
	list, seen := []any{}, map[object.Key]bool{}
	for _, v := range values {
		for e := range x.Entries(v) {
			if !seen[e.Key] {
				seen[e.Key] = true
				list = append(list, e.Object())
			}
		}
	}
	return list, nil
}

func collect(x store.Index[any], value string) []any {
	list := make([]any, 0, x.Len(value))
	for obj := range x.Get(value) {
		list = append(list, obj)
	}
	return list
}

// ByIndex returns the objects under a value of an index.
func (s *indexedStore) ByIndex(name, value string) ([]any, error) {
	x, err := s.index(name)
	if err != nil {
		return nil, err
	}
	return collect(x, value), nil
}

// IndexKeys returns the keys of the objects under a value of an index, sorted.
func (s *indexedStore) IndexKeys(name, value string) ([]string, error) {
	x, err := s.index(name)
	if err != nil {
		return nil, err
	}
	keys := make([]string, 0, x.Len(value))
	for e := range x.Entries(value) {
		keys = append(keys, string(e.Key))
	}
	slices.Sort(keys)
	return keys, nil
}

// ListIndexFuncValues returns the values of an index that have objects.
func (s *indexedStore) ListIndexFuncValues(name string) []string {
	x, err := s.index(name)
	if err != nil {
		return []string{}
	}
	return slices.AppendSeq([]string{}, x.Values())
}
