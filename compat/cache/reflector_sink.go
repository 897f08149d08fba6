package cache

import (
	"context"
	"fmt"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
)

// storeSink puts what the engine's reflector reads into a ReflectorStore. A list is
// collected and handed over whole, because a ReflectorStore takes it so.
type storeSink struct {
	store  ReflectorStore
	report func(doing string, err error)
	// contains says whether a panic of the store is handled here; otherwise it passes.
	contains func() bool
	filled   bool // the store has had a state

	list  []any
	place map[object.Key]int // in list, for what an initial stream changes again
}

// Push implements the engine's sink.
func (s *storeSink) Push(ctx context.Context, deltas []object.Delta[any]) (err error) {
	defer contain(ctx, s.contains(), source.Unavailable, &err)
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

// listed adds an object to the list. An object whose key is not known cannot be
// told from another, so it never takes the place of one.
func (s *storeSink) listed(key object.Key, obj any) {
	if at, twice := s.place[key]; twice && key != "" {
		s.list[at] = obj
		return
	}
	s.place[key] = len(s.list)
	s.list = append(s.list, obj)
}

// compact leaves out what was deleted again while the list came in.
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
