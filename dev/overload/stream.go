package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
)

// stream is a source whose objects change at a steady rate. Every fiftieth event deletes its object; the next one of
// that name is a new object.
type stream struct {
	plan plan
	made func(*thing)  // called with every object, if not nil
	said chan struct{} // closed when the last event was read

	// The following fields belong to the reflector's goroutine until said is closed.
	began   time.Time
	next    int
	current []*thing      // nil if it was deleted
	lives   []int         // how often an object of the name was created
	latest  time.Duration // the largest delay of a read
}

const deleteEvery = 50

func newStream(p plan, made func(*thing)) *stream {
	s := &stream{plan: p, made: made, said: make(chan struct{}), current: make([]*thing, p.keys),
		lives: make([]int, p.keys)}
	for k := range s.current {
		s.current[k] = s.make(k, k+1, time.Time{})
	}
	return s
}

func (s *stream) make(k, version int, at time.Time) *thing {
	t := &thing{key: keyOf(k), version: version, at: at, payload: make([]byte, s.plan.payload)}
	if s.made != nil {
		s.made(t)
	}
	return t
}

func keyOf(k int) object.Key { return object.NewKey("overload", strconv.Itoa(k)) }

// Describe names the source.
func (s *stream) Describe() source.Description { return source.Description{Resource: "things"} }

// List returns the objects before the first event.
func (s *stream) List(context.Context, source.ListOptions) (source.Lister[*thing], error) {
	return &list{s: s}, nil
}

// Watch follows the events. There is one watch in a run.
func (s *stream) Watch(ctx context.Context, o source.WatchOptions) (source.Watcher[*thing], error) {
	if want := s.version(); o.Version != want {
		return nil, fmt.Errorf("watch from %s: the stream is at %s", o.Version, want)
	}
	if s.began.IsZero() {
		s.began = time.Now()
	}
	return &watch{s: s, ctx: ctx}, nil
}

// version returns the version of the last event read.
func (s *stream) version() object.Version { return object.Version(strconv.Itoa(s.plan.keys + s.next)) }

type list struct {
	s    *stream
	read bool
}

func (l *list) Read(buf []object.Item[*thing]) ([]object.Item[*thing], error) {
	if l.read {
		return buf, io.EOF
	}
	l.read = true
	for k := range l.s.current {
		buf = append(buf, l.s.item(k))
	}
	return buf, nil
}

func (l *list) Version() object.Version { return l.s.version() }
func (l *list) Close() error            { return nil }

func (s *stream) item(k int) object.Item[*thing] {
	t := s.current[k]
	return object.Item[*thing]{Key: t.key, Version: object.Version(strconv.Itoa(t.version)),
		UID: fmt.Sprintf("%d-%d", k, s.lives[k]), Size: len(t.payload), Value: t}
}

type watch struct {
	s   *stream
	ctx context.Context
}

// Read waits for the next tick on which something is due.
func (w *watch) Read(buf []source.Change[*thing]) ([]source.Change[*thing], error) {
	s := w.s
	for {
		since := time.Since(s.began)
		if due := s.plan.due(since); due > s.next {
			s.latest = max(s.latest, since-s.plan.dueAt(s.next))
			for s.next < due {
				buf = append(buf, s.event())
			}
			if s.next == s.plan.events() {
				close(s.said)
			}
			return buf, nil
		}
		var wake <-chan time.Time
		if s.next < s.plan.events() {
			wake = time.After(max(tick, s.plan.dueAt(s.next)-since))
		}
		select {
		case <-wake:
		case <-w.ctx.Done():
			return buf, w.ctx.Err()
		}
	}
}

func (w *watch) Close() error { return nil }

// event returns the next event. Its version is one more than that of the last, so that a handler can detect gaps.
func (s *stream) event() source.Change[*thing] {
	k := s.next * 7919 % s.plan.keys // a prime stride visits all keys in a scattered order
	s.next++
	gone := s.current[k] != nil && s.next%deleteEvery == 0
	if s.current[k] == nil {
		s.lives[k]++
	}
	s.current[k] = s.make(k, s.plan.keys+s.next, time.Now())
	c := source.Change[*thing]{Type: object.Updated, Item: s.item(k)}
	if gone {
		c.Type, s.current[k] = object.Deleted, nil
	}
	return c
}
