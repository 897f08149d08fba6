package cache

import (
	"context"
	"fmt"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
)

// storeSink writes what the engine's reflector reads to a ReflectorStore. It collects a
// list first, because a ReflectorStore takes a list whole.
type storeSink struct {
	store  ReflectorStore
	report func(doing string, err error)
	// recovers reports whether panics of the store are recovered.
	recovers func() bool
	filled   bool // the store has received a list

	list  []any
	place map[object.Key]int // index in list, for objects that change while an initial state is read
}

// Push implements the engine's sink.
func (s *storeSink) Push(ctx context.Context, deltas []object.Delta[any]) (err error) {
	defer recoverPanic(ctx, s.recovers(), source.Unavailable, &err)
	for i := range deltas {
		if err := s.take(&deltas[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *storeSink) take(d *object.Delta[any]) error {
	switch d.Type {
	case object.ReplaceBegin:
		s.list, s.place = []any{}, map[object.Key]int{}
		return nil
	case object.ReplaceAbort:
		s.list, s.place = nil, nil
		return nil
	case object.ReplaceEnd:
		list := s.compact()
		s.list, s.place = nil, nil
		if err := s.store.Replace(list, string(d.Item.Version)); err != nil {
			return fmt.Errorf("unable to sync list result: %w", err)
		}
		s.filled = true
		return nil
	case object.Bookmark:
		if b, ok := s.store.(ReflectorBookmarkStore); ok {
			s.check("bookmark", b.Bookmark(string(d.Item.Version)))
		}
		s.reached(d)
		return nil
	}
	obj, err := d.Item.Object()
	if err != nil {
		s.report("decode", err)
		return nil
	}
	switch {
	case s.place != nil && d.Type == object.Deleted:
		if at, ok := s.place[d.Item.Key]; ok {
			s.list[at] = nil
			delete(s.place, d.Item.Key)
		}
	case d.Type == object.Replaced:
		s.listed(d.Item.Key, obj)
	case d.Type == object.Added:
		s.check("add", s.store.Add(obj))
		s.reached(d)
	case d.Type == object.Updated:
		s.check("update", s.store.Update(obj))
		s.reached(d)
	case d.Type == object.Deleted:
		s.check("delete", s.store.Delete(obj))
		s.reached(d)
	}
	return nil
}

// listed adds an object to the list, or replaces the one with its key. An object without
// a key replaces none.
func (s *storeSink) listed(key object.Key, obj any) {
	if at, exists := s.place[key]; exists && key != "" {
		s.list[at] = obj
		return
	}
	s.place[key] = len(s.list)
	s.list = append(s.list, obj)
}

// compact removes the objects that were deleted while the list was read.
func (s *storeSink) compact() []any {
	out := s.list[:0]
	for _, obj := range s.list {
		if obj != nil {
			out = append(out, obj)
		}
	}
	return out
}

func (s *storeSink) reached(d *object.Delta[any]) {
	if u, ok := s.store.(ResourceVersionUpdater); ok && d.Item.Version != "" {
		u.UpdateResourceVersion(string(d.Item.Version))
	}
}

func (s *storeSink) check(doing string, err error) {
	if err != nil {
		s.report(doing, err)
	}
}
