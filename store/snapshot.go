package store

import (
	"iter"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mirador-k8s/mirador/object"
)

// The states of a snapshot. The writer publishes one at the end of each batch. The first reader that asks for it takes
// it, and from then on neither it nor a node below it changes. If no reader took it, the writer reclaims it at the
// next batch and continues to edit in place: a snapshot that no reader asks for costs no copy, and the writer never
// waits. From taken on, the snapshot can be read.
const (
	reclaimed uint32 = iota
	available
	taken
	outdated // taken, and the batch after it is open
)

// Snapshot is the store at one commit: its objects, indexes and version belong together and never change. It keeps its
// objects in memory, so drop it when it is no longer needed. Any number of goroutines may read it.
type Snapshot[T any] struct {
	state   atomic.Uint32
	order   sync.Once
	cfg     *config[T]
	seq     uint64
	version object.Version
	objects vec[slotValue[T]]
	keys    vec[*byte]  // the first byte of each object's key; empty if updates change the address of the key
	words   vec[uint64] // hash of the key -> slot, see find
	set     *indexSet[T]
	roots   []*trieNode // by number of the index

	sorted *[]*Entry[T] // once order is done
}

// Seq returns the sequence number of the commit.
func (s *Snapshot[T]) Seq() uint64 { return s.seq }

// Version returns the source's version at the commit.
func (s *Snapshot[T]) Version() object.Version { return s.version }

// Len returns the number of objects.
func (s *Snapshot[T]) Len() int { return s.objects.n }

// Get returns the object of a key.
func (s *Snapshot[T]) Get(key object.Key) (T, bool) {
	var zero T
	switch at := s.find(key); {
	case at == nil:
		return zero, false
	case s.cfg.plain():
		return at.obj, true
	default:
		return at.rec.Object(), true
	}
}

// Entry returns the entry of a key.
func (s *Snapshot[T]) Entry(key object.Key) (*Entry[T], bool) {
	at := s.find(key)
	if at == nil {
		return nil, false
	}
	return &at.rec.Entry, true
}

// The iterators below have their loop in the function that they return, and call yield in one place, so that the
// compiler can inline the body of the caller's loop.

// All yields every object with its key, in no particular order.
func (s *Snapshot[T]) All() iter.Seq2[object.Key, T] {
	return func(yield func(object.Key, T) bool) {
		for base := 0; base < s.objects.n; base += width {
			for _, v := range s.objects.chunk(base) {
				if !yield(v.rec.Key, v.rec.Object()) {
					return
				}
			}
		}
	}
}

// Objects yields every object, in no particular order. It is several times as fast as All, because it does not read
// the entries.
func (s *Snapshot[T]) Objects() iter.Seq[T] {
	return func(yield func(T) bool) {
		plain := s.cfg.plain()
		for base := 0; base < s.objects.n; base += width {
			for _, v := range s.objects.chunk(base) {
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

// Entries yields the entry of every object, in no particular order. The entries are read-only.
func (s *Snapshot[T]) Entries() iter.Seq[*Entry[T]] {
	return func(yield func(*Entry[T]) bool) {
		for base := 0; base < s.objects.n; base += width {
			for _, v := range s.objects.chunk(base) {
				if !yield(v.rec.entryWithoutLoad()) {
					return
				}
			}
		}
	}
}

// Ordered yields every object in the order of the keys. The first call on a snapshot sorts; the snapshot keeps the
// order.
func (s *Snapshot[T]) Ordered() iter.Seq2[object.Key, T] {
	return func(yield func(object.Key, T) bool) { s.eachOrdered(yield) }
}

func (s *Snapshot[T]) eachOrdered(yield func(object.Key, T) bool) {
	for _, e := range s.inOrder() {
		if !yield(e.Key, e.Object()) {
			return
		}
	}
}

// Page returns up to limit entries in the order of the keys, from the first key after the given one ("" is before all
// keys), and whether there are more. A limit of zero or less means no limit. The entries are read-only.
func (s *Snapshot[T]) Page(after object.Key, limit int) (page []*Entry[T], more bool) {
	rest := s.inOrder()
	if after != "" {
		rest = rest[sort.Search(len(rest), func(i int) bool { return rest[i].Key > after }):]
	}
	if limit > 0 && limit < len(rest) {
		return slices.Clone(rest[:limit]), true
	}
	return slices.Clone(rest), false
}

func (s *Snapshot[T]) inOrder() []*Entry[T] {
	s.order.Do(func() {
		all := make([]*Entry[T], 0, s.objects.n)
		for e := range s.Entries() {
			all = append(all, e)
		}
		slices.SortFunc(all, func(a, b *Entry[T]) int { return strings.Compare(string(a.Key), string(b.Key)) })
		s.sorted = &all
	})
	return *s.sorted
}

// ByIndex yields the objects under a value of an index, in no particular order. If the index does not exist, it yields
// none and calls Options.OnError; Index returns an error instead.
func (s *Snapshot[T]) ByIndex(index, value string) iter.Seq[T] {
	return func(yield func(T) bool) {
		b, plain := s.bucketOf(index, value), s.cfg.plain()
		for base := 0; base < b.slots.n; base += width {
			for _, slot := range b.slots.chunk(base) {
				v := s.objects.at(int(slot))
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

func (s *Snapshot[T]) bucketOf(index, value string) *bucket {
	x, err := s.Index(index)
	if err != nil {
		s.cfg.report("", index, err)
		return &emptyBucket
	}
	return x.bucket(value)
}

// Index returns an index of the snapshot. The error for an index that does not exist lists those that do.
func (s *Snapshot[T]) Index(name string) (Index[T], error) {
	i := slices.Index(s.set.names, name)
	if i < 0 {
		return Index[T]{}, s.set.unknown(name)
	}
	return Index[T]{snap: s, root: s.roots[i]}, nil
}
