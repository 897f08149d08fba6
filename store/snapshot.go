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

// The states of a snapshot. The writer fills one at the end of each batch and
// offers it; the first reader that wants it takes it, and from then on nobody
// changes it nor a node below it. If no reader came, the writer withdraws it at
// the next batch and goes on editing in place: so a snapshot that nobody asks for
// costs no copy, and the writer waits for nobody. From taken on, it can be read.
const (
	withdrawn uint32 = iota
	offered
	taken
	passing // and the batch after it is open
)

// Snapshot is the store at one moment: objects, all indexes and version belong
// together and never change. It holds on to the objects of its moment, so let go of
// it when done. Any number of goroutines may read it.
type Snapshot[T any] struct {
	state   atomic.Uint32
	order   sync.Once
	cfg     *config[T]
	seq     uint64
	version object.Version
	objects vec[seat[T]]
	keys    vec[*byte]  // where the key of each object begins; none where updates move it
	words   vec[uint64] // key -> slot, see find
	set     *indexSet[T]
	roots   []*trieNode // by number of the index

	sorted *[]*Entry[T] // once order is done
}

// Seq is the number of the batch that made this state.
func (s *Snapshot[T]) Seq() uint64 { return s.seq }

// Version is the source's version of this state.
func (s *Snapshot[T]) Version() object.Version { return s.version }

// Len is the number of objects.
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

// Entry is Get with all that is known of the object.
func (s *Snapshot[T]) Entry(key object.Key) (*Entry[T], bool) {
	at := s.find(key)
	if at == nil {
		return nil, false
	}
	return &at.rec.Entry, true
}

// The iterators below have their loop in the function that they return, and call yield in
// one place: then the compiler puts the body of the caller's loop into it, and walking
// 50,000 objects takes 45 us. With a call for each object it takes 190.

// All yields every object in the order that is fastest, which says nothing.
func (s *Snapshot[T]) All() iter.Seq2[object.Key, T] {
	return func(yield func(object.Key, T) bool) {
		for base := 0; base < s.objects.n; base += width {
			for _, seat := range s.objects.chunk(base) {
				if !yield(seat.rec.Key, seat.rec.Object()) {
					return
				}
			}
		}
	}
}

// Objects is All without the keys, which makes it several times as fast: nothing but the
// objects themselves is looked at.
func (s *Snapshot[T]) Objects() iter.Seq[T] {
	return func(yield func(T) bool) {
		plain := s.cfg.plain()
		for base := 0; base < s.objects.n; base += width {
			for _, seat := range s.objects.chunk(base) {
				obj := seat.obj
				if !plain {
					obj = seat.rec.Object()
				}
				if !yield(obj) {
					return
				}
			}
		}
	}
}

// Entries is All with all that is known of the objects. The entries are read-only.
func (s *Snapshot[T]) Entries() iter.Seq[*Entry[T]] {
	return func(yield func(*Entry[T]) bool) {
		for base := 0; base < s.objects.n; base += width {
			for _, seat := range s.objects.chunk(base) {
				if !yield(seat.rec.untouched()) {
					return
				}
			}
		}
	}
}

// Ordered yields every object by key. The first call on a snapshot sorts, and the
// order is kept for the others.
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

// Page returns up to limit entries by key, beginning with the first key behind
// after ("" begins at the start), and whether there are more. A limit of zero or
// less is none. The entries are read-only.
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

// ByIndex yields the objects under a value of an index, in no particular order. An
// index that does not exist yields nothing and is reported to Options.OnError, each
// time it is read; Index returns that as an error instead.
func (s *Snapshot[T]) ByIndex(index, value string) iter.Seq[T] {
	return func(yield func(T) bool) {
		b, plain := s.bucketOf(index, value), s.cfg.plain()
		for base := 0; base < b.slots.n; base += width {
			for _, slot := range b.slots.chunk(base) {
				seat := s.objects.at(int(slot))
				obj := seat.obj
				if !plain {
					obj = seat.rec.Object()
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
		return &nothing
	}
	return x.bucket(value)
}

// Index returns an index of the snapshot. The error for one that does not exist
// lists those that do.
func (s *Snapshot[T]) Index(name string) (Index[T], error) {
	i := slices.Index(s.set.names, name)
	if i < 0 {
		return Index[T]{}, s.set.unknown(name)
	}
	return Index[T]{snap: s, root: s.roots[i]}, nil
}
