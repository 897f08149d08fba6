package fleet

import (
	"context"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
)

// limited is a source that fails when its mirror would exceed a limit. It wraps the source,
// so that objects beyond the limit never reach the mirror.
type limited[T any] struct {
	source.Source[T]
	usage *mirrorUsage
	// held returns what the mirror has. It is set before the source is read.
	held func() (objects, bytes int64)
	// visible reports whether the mirror can be read.
	visible func() bool
	gate    *gate
}

// List opens a list that fails when it exceeds a limit.
func (s *limited[T]) List(ctx context.Context, opts source.ListOptions) (source.Lister[T], error) {
	if err := s.admit(ctx); err != nil {
		return nil, err
	}
	l, err := s.Source.List(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &limitedList[T]{Lister: l, state: s.state()}, nil
}

// Watch opens a watch that fails when the mirror exceeds a limit.
func (s *limited[T]) Watch(ctx context.Context, opts source.WatchOptions) (source.Watcher[T], error) {
	if err := s.admit(ctx); err != nil {
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

// admit returns an error if the resource must not be read now. It waits until the cluster is known.
func (s *limited[T]) admit(ctx context.Context) error {
	if err := s.gate.pass(ctx); err != nil {
		return err
	}
	return s.usage.refused()
}

// arriving counts the objects of a state while it is read, by a list or at the beginning of a
// watch.
type arriving struct {
	usage         *mirrorUsage
	visible       func() bool
	objects       int64
	size          sizeEstimate
	before, after int64 // objects and bytes of the mirror until the state is complete
}

func (s *limited[T]) state() arriving {
	a := arriving{usage: s.usage, visible: s.visible}
	a.before, a.after = s.held()
	return a
}

func (a *arriving) add(size int, encoded []byte) {
	a.objects++
	a.size.add(size, encoded)
}

// check returns an error if a limit is exceeded. Most objects of a relist are already in the
// mirror and are not kept twice, so the larger of both counts.
func (a *arriving) check() error {
	return a.usage.set(max(a.before, a.objects), max(a.after, a.size.estimate()+a.objects*objectCost), a.visible())
}

type limitedList[T any] struct {
	source.Lister[T]
	state arriving
}

// Read returns items, or an error if a limit is exceeded.
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
	// checkBytes and checkChanges are how much of a watch is read between two checks of the
	// mirror.
	checkBytes   = 256 << 10
	checkChanges = 1000
)

type limitedWatch[T any] struct {
	source.Watcher[T]
	of    *limited[T]
	state *arriving // until the initial state is complete
	// Since the last check of the mirror:
	bytes   int64
	changes int
	quiet   bool // a bookmark or the end was read: earlier changes are in the mirror by now
}

// Read returns changes, or an error if a limit is exceeded.
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

// check checks the mirror from time to time, because little is read in between. It also checks it at a bookmark: after
// many changes at once the mirror may not have them all when they have been read.
func (w *limitedWatch[T]) check(changes int) error {
	if w.state != nil {
		if changes == 0 {
			return nil
		}
		return w.state.check()
	}
	if w.changes += changes; w.bytes < checkBytes && w.changes < checkChanges && !w.quiet {
		return nil
	}
	w.bytes, w.changes, w.quiet = 0, 0, false
	objects, bytes := w.of.held()
	return w.of.usage.set(objects, bytes, true)
}

// holds returns a function for the objects and bytes in an informer's store and queue.
func holds[T any](inf *informer.Informer[T]) func() (objects, bytes int64) {
	return func() (objects, bytes int64) {
		h := inf.Health()
		objects = int64(h.Objects)
		return objects, objects*objectCost + h.Layout.Bytes + int64(h.QueueBytes)
	}
}
