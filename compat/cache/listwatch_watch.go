package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
)

// readAtOnce bounds how many events one Read takes.
const readAtOnce = 1000

// shortWatch is how long a watch must last, or say something, to count as one.
const shortWatch = time.Second

func (nothing) WatchWithContext(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return nil, errNoListerWatcher
}

// events is an open watch.
type events struct {
	src     *lwSource
	ctx     context.Context
	w       watch.Interface
	opened  time.Time
	heard   int  // events so far
	initial bool // the end of the initial state has not come
	// unordered: the watch began at no version, so it opens with the objects there
	// are in any order, and their versions say nothing about how far it has come.
	unordered bool
	failed    error // what an event said; nothing behind it counts
}

// Watch opens a watch.
func (s *lwSource) Watch(ctx context.Context, opts source.WatchOptions) (_ source.Watcher[any], err error) {
	defer contain(ctx, s.contains(), afterCrash(opts.InitialState), &err)
	seconds := int64(opts.Timeout.Seconds())
	o := metav1.ListOptions{
		ResourceVersion:     string(opts.Version),
		AllowWatchBookmarks: true,
		TimeoutSeconds:      &seconds,
	}
	if opts.InitialState {
		yes := true
		o.SendInitialEvents, o.ResourceVersionMatch = &yes, metav1.ResourceVersionMatchNotOlderThan
	}
	opened := time.Now() // before the request: a proxy may hold back the headers until there is an event
	w, err := call(ctx, func() (watch.Interface, error) { return s.lw.WatchWithContext(ctx, o) }, watch.Interface.Stop)
	if err != nil {
		if opts.InitialState {
			return nil, s.initialError(err)
		}
		return nil, s.watchError(err)
	}
	if w == nil {
		return nil, s.watchError(errors.New("Watch returned neither a watch nor an error"))
	}
	return &events{src: s, ctx: ctx, w: w, opened: opened, initial: opts.InitialState,
		unordered: !opts.InitialState && (opts.Version == "" || opts.Version == "0")}, nil
}

// afterCrash is the reason that has the state read again after a panic: an initial state in the same way, a watch by
// giving up its place.
func afterCrash(initial bool) source.Reason {
	if initial {
		return source.Unavailable
	}
	return source.Expired
}

// Read waits for an event, then takes all that are there.
func (e *events) Read(buf []source.Change[any]) (_ []source.Change[any], err error) {
	defer contain(e.ctx, e.src.contains(), afterCrash(e.initial), &err)
	if e.failed != nil {
		return buf, e.failed
	}
	c := e.w.ResultChan()
	var event watch.Event
	open := true
	select {
	case event, open = <-c:
	case <-e.ctx.Done():
		return buf, context.Cause(e.ctx)
	}
	for limit := len(buf) + readAtOnce; open; {
		if buf, err = e.add(buf, &event); err != nil {
			return buf, err
		}
		if len(buf) >= limit {
			return buf, nil
		}
		select {
		case event, open = <-c:
		default:
			return buf, nil
		}
	}
	return buf, e.closed()
}

// add makes a change of an event.
func (e *events) add(buf []source.Change[any], event *watch.Event) ([]source.Change[any], error) {
	if event.Type == watch.Error {
		e.failed = e.src.streamError(apierrors.FromObject(event.Object))
		return buf, e.failed
	}
	e.heard++
	buf = append(buf, source.Change[any]{})
	e.change(&buf[len(buf)-1], event)
	return buf, nil
}

// closed says what the end of the stream means.
func (e *events) closed() error {
	switch {
	case e.initial && e.heard > 0:
		// Cut off in the middle: worth another try, once.
		if e.src.cutShort++; e.src.cutShort%2 == 1 {
			return &source.Error{Reason: source.Unavailable,
				Err: fmt.Errorf("the watch ended before its initial state was complete: %w", io.ErrUnexpectedEOF)}
		}
		return io.EOF
	case e.heard == 0 && time.Since(e.opened) < shortWatch:
		short := &VeryShortWatchError{Name: e.src.description.Resource}
		if e.initial {
			return io.EOF
		}
		return &source.Error{Reason: source.Expired, Err: short}
	}
	return io.EOF
}

// change fills in a change.
func (e *events) change(c *source.Change[any], event *watch.Event) {
	if !e.src.plain || reflect.TypeOf(event.Object) != e.src.expected { // else it is what was asked for
		if err := e.src.unexpected(event); err != nil {
			*c = source.Change[any]{Type: object.Undecodable, Err: err}
			return
		}
	}
	switch event.Type {
	case watch.Modified:
		c.Type = object.Updated
	case watch.Added:
		c.Type = object.Added
	case watch.Deleted:
		c.Type = object.Deleted
	case watch.Bookmark:
		*c = e.bookmark(event)
		return
	default:
		c.Type, c.Err = object.Undecodable, fmt.Errorf("there is no watch event of type %q", event.Type)
	}
	e.src.item(&c.Item, event.Object)
	switch {
	case !e.unordered || c.Type == object.Undecodable:
	case c.Type == object.Added:
		c.Item.Version = ""
	default:
		e.unordered = false
	}
}

func (e *events) bookmark(event *watch.Event) source.Change[any] {
	e.unordered = false
	m, err := meta.Accessor(event.Object)
	if err != nil {
		return source.Change[any]{Type: object.Undecodable, Err: fmt.Errorf("reading a bookmark: %w", err)}
	}
	end := m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
	if end && e.initial {
		e.initial, e.src.cutShort = false, 0
	}
	return source.Change[any]{
		Type:       object.Bookmark,
		Item:       object.Item[any]{Version: object.Version(m.GetResourceVersion())},
		InitialEnd: end,
	}
}

// unexpected says what is wrong with an event that is not about the objects that
// were asked for.
func (s *lwSource) unexpected(event *watch.Event) error {
	if s.expected != nil && reflect.TypeOf(event.Object) != s.expected {
		return fmt.Errorf("a watch event is about a %T; expected %s", event.Object, s.expected)
	}
	if event.Object == nil {
		return errors.New("a watch event has no object")
	}
	if s.expectedGVK != nil {
		if gvk := event.Object.GetObjectKind().GroupVersionKind(); gvk != *s.expectedGVK {
			return fmt.Errorf("a watch event is about %s; expected %s", gvk, *s.expectedGVK)
		}
	}
	if gvk, table := isTable(event.Object); table {
		return fmt.Errorf("a watch event is a table (%s), which has no object in it; do not ask for tables", gvk)
	}
	return nil
}

// Close stops the watch.
func (e *events) Close() (err error) {
	defer contain(e.ctx, e.src.contains(), afterCrash(e.initial), &err)
	e.w.Stop()
	return nil
}
