package cache

import (
	"fmt"
	"slices"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

func (s *shelf) get(key string) (any, bool) { return s.read.Get(object.Key(key)) }

// List gives all objects, in no particular order.
func (s *shelf) List() []any {
	snap := s.read.Snapshot()
	return snap.AppendObjects(make([]any, 0, snap.Len()))
}

// ListKeys gives all keys, in no particular order.
func (s *shelf) ListKeys() []string {
	snap := s.read.Snapshot()
	keys := make([]string, 0, snap.Len())
	for key := range snap.All() {
		keys = append(keys, string(key))
	}
	return keys
}

// LastStoreSyncResourceVersion is the resource version that was written last.
func (s *shelf) LastStoreSyncResourceVersion() string {
	if s.sourceVersion != nil {
		return string(s.sourceVersion())
	}
	if v := s.version.Load(); v != nil {
		return *v
	}
	return ""
}

// Bookmark notes a resource version.
func (s *shelf) Bookmark(rv string) { s.reached(rv) }

// Resync does nothing.
func (s *shelf) Resync() error { return nil }

// noIndex uses client-go's words, which callers compare.
func noIndex(name string) error { return fmt.Errorf("Index with name %s does not exist", name) }

// bucket finds the objects under one value of an index.
func (s *shelf) bucket(name string) (store.Index[any], error) {
	x, err := s.read.Snapshot().Index(name)
	if err != nil {
		return x, noIndex(name)
	}
	return x, nil
}

// Index gives the objects that share a value of an index with obj.
func (s *shelf) Index(name string, obj any) ([]any, error) {
	f := (*s.indexers.Load())[name]
	if f == nil {
		return nil, noIndex(name)
	}
	values, err := f(obj)
	if err != nil {
		return nil, err
	}
	x, err := s.bucket(name)
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

// ByIndex gives the objects under a value of an index.
func (s *shelf) ByIndex(name, value string) ([]any, error) {
	x, err := s.bucket(name)
	if err != nil {
		return nil, err
	}
	return collect(x, value), nil
}

// IndexKeys gives the keys of the objects under a value of an index, sorted.
func (s *shelf) IndexKeys(name, value string) ([]string, error) {
	x, err := s.bucket(name)
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

// ListIndexFuncValues gives the values of an index that have objects.
func (s *shelf) ListIndexFuncValues(name string) []string {
	x, err := s.bucket(name)
	if err != nil {
		return []string{}
	}
	return slices.AppendSeq([]string{}, x.Values())
}
