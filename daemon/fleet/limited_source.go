package fleet

import (
	"context"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
)

// limited is a source that ends when what is held of it becomes too much. It stands
// before the mirror and not behind it: what is too much must not be taken in first.
type limited[T any] struct {
	source.Source[T]
	of    *ledger
	gauge *gauge
	// held tells what the mirror has. It is there before the source is read.
	held func() (objects, bytes int64)
	// shows reports whether anybody can see anything of it.
	shows func() bool
}

// List opens a list that ends with an error when it becomes too long.
func (s *limited[T]) List(ctx context.Context, opts source.ListOptions) (source.Lister[T], error) {
	if err := s.gauge.refused(); err != nil {
		return nil, err
	}
	l, err := s.Source.List(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &limitedList[T]{Lister: l, state: s.state()}, nil
}

// Watch opens a watch that ends with an error when it brings too much.
func (s *limited[T]) Watch(ctx context.Context, opts source.WatchOptions) (source.Watcher[T], error) {
	if err := s.gauge.refused(); err != nil {
		return nil, err
	}
	w, err := s.Source.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	out := &limitedWatch[T]{Watcher: w, of: s}
	if opts.InitialState {
		state := s.state()
		out.state = &state
	}
	return out, nil
}

// arriving counts a state while it arrives, by a list or at the beginning of a watch.
type arriving struct {
	gauge         *gauge
	shows         func() bool
	objects       int64
	scale         scale
	before, after int64 // objects and bytes that the mirror has until the state is complete
}

func (s *limited[T]) state() arriving {
	a := arriving{gauge: s.gauge, shows: s.shows, scale: scale{by: &s.of.sample}}
	a.before, a.after = s.held()
	return a
}

func (a *arriving) add(size int, encoded []byte) {
	a.objects++
	a.scale.add(size, encoded)
}

// check says whether it has become too much. Of a state that is read again most is
// known, and is not held twice.
func (a *arriving) check() error {
	return a.gauge.set(max(a.before, a.objects), max(a.after, a.scale.estimate()+a.objects*objectCost), a.shows())
}

type limitedList[T any] struct {
	source.Lister[T]
	state arriving
}

// Read hands items on unless they are too many.
func (l *limitedList[T]) Read(buf []object.Item[T]) ([]object.Item[T], error) {
	start := len(buf)
	buf, err := l.Lister.Read(buf)
	for i := range buf[start:] {
		it := &buf[start+i]
		l.state.add(it.Size, it.Encoded)
	}
	if len(buf) > start {
		if over := l.state.check(); over != nil {
			clear(buf[start:])
			return buf[:start], over
		}
	}
	return buf, err
}

const (
	// lookBytes and lookChanges are after how much of a watch the mirror is looked at.
	lookBytes   = 256 << 10
	lookChanges = 1000
)

type limitedWatch[T any] struct {
	source.Watcher[T]
	of    *limited[T]
	state *arriving // until the initial state is complete
	// Since the mirror was last looked at:
	bytes   int64
	changes int
	quiet   bool // a bookmark or the end came: what was read is in the mirror by now
}

// Read hands changes on unless they are too many.
func (w *limitedWatch[T]) Read(buf []source.Change[T]) ([]source.Change[T], error) {
	start := len(buf)
	buf, err := w.Watcher.Read(buf)
	for i := range buf[start:] {
		w.note(&buf[start+i])
	}
	w.quiet = w.quiet || err != nil
	if over := w.check(len(buf) - start); over != nil {
		clear(buf[start:])
		return buf[:start], over
	}
	return buf, err
}

func (w *limitedWatch[T]) note(c *source.Change[T]) {
	switch {
	case w.state == nil:
		w.bytes += int64(c.Item.Size)
		w.quiet = w.quiet || c.Type == object.Bookmark
	case c.Type == object.Bookmark && c.InitialEnd:
		w.state = nil
	case c.Type == object.Added, c.Type == object.Updated, c.Type == object.Undecodable:
		w.state.add(c.Item.Size, c.Item.Encoded)
	}
}

// check looks at the mirror, now and then: what is read in between is little. It is looked at between the last
// changes and a long silence, too: after many changes at once the mirror may not have them all when they have been
// read.
func (w *limitedWatch[T]) check(changes int) error {
	if w.state != nil {
		if changes == 0 {
			return nil
		}
		return w.state.check()
	}
	if w.changes += changes; w.bytes < lookBytes && w.changes < lookChanges && !w.quiet {
		return nil
	}
	w.bytes, w.changes, w.quiet = 0, 0, false
	objects, bytes := w.of.held()
	return w.of.gauge.set(objects, bytes, true)
}

// holds tells what an informer has, and what waits before its store.
func holds[T any](inf *informer.Informer[T]) func() (objects, bytes int64) {
	return func() (objects, bytes int64) {
		h := inf.Health()
		objects = int64(h.Objects)
		return objects, objects*objectCost + h.Layout.Bytes + int64(h.QueueBytes)
	}
}
