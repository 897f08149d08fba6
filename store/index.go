package store

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// IndexFunc computes the values under which an index finds an object. The writer calls it during a batch: it must
// neither block nor ask for a snapshot. It must not change the object, and may return a value twice. If it fails or
// panics, the object is stored, is left out of this index, and the failure is reported to Options.OnError.
type IndexFunc[T any] func(obj T) ([]string, error)

// errUnknownIndex is wrapped by the error for an index that does not exist.
var errUnknownIndex = errors.New("no such index")

// indexSet is the store's indexes. It is immutable: adding an index makes a new set.
type indexSet[T any] struct {
	names []string       // by number; a store has few, so they are searched
	funcs []IndexFunc[T] // nil for ByNamespace
}

// ByNamespace returns the function of an index by namespace. The store takes the namespace from the key, the part
// before its first slash or "", and never calls the function: adding the index decodes no object, and a change does
// not read the object for it.
//
//go:noinline
func ByNamespace[T any]() IndexFunc[T] { // not inlined, so that there is one function to compare with
	return func(T) ([]string, error) {
		return nil, errors.New("an index by namespace is computed from keys; its function cannot be called")
	}
}

// IsByNamespace reports whether an index function is that of ByNamespace. Code that wraps index functions must not
// wrap this one, because it is never called.
func IsByNamespace[T any](f IndexFunc[T]) bool {
	return reflect.ValueOf(f).Pointer() == reflect.ValueOf(ByNamespace[T]()).Pointer()
}

// needsObjects reports whether one of the indexes from number from on reads the objects.
func (s *indexSet[T]) needsObjects(from int) bool {
	return slices.ContainsFunc(s.funcs[from:], func(f IndexFunc[T]) bool { return f != nil })
}

// with returns the set with further indexes, in the order of their names.
func (s *indexSet[T]) with(add map[string]IndexFunc[T]) (*indexSet[T], error) {
	grown := &indexSet[T]{
		names: slices.Clone(s.names),
		funcs: slices.Clone(s.funcs),
	}
	for _, name := range slices.Sorted(maps.Keys(add)) {
		if name == "" {
			return nil, errors.New("add an index: its name is empty; set one")
		}
		if add[name] == nil {
			return nil, fmt.Errorf("add index %q: its function is nil", name)
		}
		if slices.Contains(s.names, name) {
			return nil, fmt.Errorf("add index %q: an index with this name exists; choose another name", name)
		}
		grown.names = append(grown.names, name)
		values := add[name]
		if IsByNamespace(values) {
			values = nil
		}
		grown.funcs = append(grown.funcs, values)
	}
	return grown, nil
}

func (s *indexSet[T]) sorted() []string { return slices.Sorted(slices.Values(s.names)) }

func (s *indexSet[T]) unknown(name string) error {
	if len(s.names) == 0 {
		return fmt.Errorf("read index %q: %w; there are none, add it with AddIndexes", name, errUnknownIndex)
	}
	return fmt.Errorf("read index %q: %w; known are %s", name, errUnknownIndex, strings.Join(s.sorted(), ", "))
}

// callIndex runs an index function and turns a panic into an error.
func callIndex[T any](fn IndexFunc[T], obj T) (values []string, err error) {
	defer func() {
		if p := recover(); p != nil {
			values, err = nil, fmt.Errorf("index function panicked: %v", p)
		}
	}()
	return fn(obj)
}

// Index is one index of a snapshot.
type Index[T any] struct {
	snap *Snapshot[T]
	root *trieNode
}

// Get yields the objects under a value, in no particular order.
func (x Index[T]) Get(value string) iter.Seq[T] {
	return func(yield func(T) bool) {
		b, plain := x.bucket(value), x.snap.cfg.plain()
		for base := 0; base < b.slots.n; base += width {
			for _, slot := range b.slots.chunk(base) {
				v := x.snap.objects.at(int(slot))
				obj := v.obj
				if !plain {
					obj = v.rec.Object()
				}
				if !yield(obj) {
					return
				}
			}
		}
	}
}

// Entries yields the entries of the objects under a value, in no particular order. The entries are read-only.
func (x Index[T]) Entries(value string) iter.Seq[*Entry[T]] {
	return func(yield func(*Entry[T]) bool) {
		b := x.bucket(value)
		for base := 0; base < b.slots.n; base += width {
			for _, slot := range b.slots.chunk(base) {
				if !yield(x.snap.objects.at(int(slot)).rec.entryWithoutLoad()) {
					return
				}
			}
		}
	}
}

// Len returns the number of objects under a value.
func (x Index[T]) Len(value string) int { return x.bucket(value).slots.n }

// Values yields the values that have objects, sorted.
func (x Index[T]) Values() iter.Seq[string] {
	return func(yield func(string) bool) {
		var values []string
		x.root.each(func(b *bucket) bool {
			values = append(values, b.h.value)
			return true
		})
		slices.Sort(values)
		for _, v := range values {
			if !yield(v) {
				return
			}
		}
	}
}

// bucket returns the bucket of a value. It is never nil.
func (x Index[T]) bucket(value string) *bucket {
	if b := x.root.find(hashValue(x.snap.cfg.seed, value), value); b != nil {
		return b
	}
	return &emptyBucket
}

// emptyBucket is the bucket of a value that no object has.
var emptyBucket bucket
