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

// readEvents is how many events one Read returns at most.
const readEvents = 1000

// shortWatch is the time within which a watch that ends without an event counts as failed.
const shortWatch = time.Second

func (noListerWatcher) WatchWithContext(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return nil, errNoListerWatcher
}

// events is an open watch.
type events struct {
	src     *lwSource
	ctx     context.Context
	w       watch.Interface
	opened  time.Time
	events  int  // received so far
	initial bool // the initial state is not complete
	// unordered: the watch started without a version, so it begins with the existing
	// objects in any order, and their versions are not versions of the stream.
	unordered bool
	failed    error // of an error event; later events are ignored
}

// Watch opens a watch.
func (s *lwSource) Watch(ctx context.Context, opts source.WatchOptions) (_ source.Watcher[any], err error) {
	defer recoverPanic(ctx, s.recovers(), reasonAfterPanic(opts.InitialState), &err)
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
	opened := time.Now() // before the request: a proxy may delay the headers until the first event
	w, err := call(ctx, func() (watch.Interface, error) { return s.lw.WatchWithContext(ctx, o) },
		func(late watch.Interface) {
			if late != nil {
				late.Stop()
			}
		})
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

// reasonAfterPanic returns the reason that leads to a relist after a panic.
func reasonAfterPanic(initial bool) source.Reason {
	if initial {
		return source.Unavailable
	}
	return source.Expired
}

// Read waits for an event and returns it with all others that are available.
func (e *events) Read(buf []source.Change[any]) (_ []source.Change[any], err error) {
	defer recoverPanic(e.ctx, e.src.recovers(), reasonAfterPanic(e.initial), &err)
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
	for limit := len(buf) + readEvents; open; {
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

// add appends the change that an event describes.
func (e *events) add(buf []source.Change[any], event *watch.Event) ([]source.Change[any], error) {
	if event.Type == watch.Error {
		e.failed = e.src.streamError(apierrors.FromObject(event.Object))
		return buf, e.failed
	}
	e.events++
	buf = append(buf, source.Change[any]{})
	e.change(&buf[len(buf)-1], event)
	return buf, nil
}

// closed returns the error for the end of the stream.
func (e *events) closed() error {
	switch {
	case e.initial && e.events > 0:
		// Cut off in the middle: retried once.
		if e.src.cutShort++; e.src.cutShort%2 == 1 {
			return &source.Error{Reason: source.Unavailable,
				Err: fmt.Errorf("the watch ended before its initial state was complete: %w", io.ErrUnexpectedEOF)}
		}
		return io.EOF
	case e.events == 0 && time.Since(e.opened) < shortWatch:
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
	if !e.src.plain || reflect.TypeOf(event.Object) != e.src.expected {
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
		c.Type, c.Err = object.Undecodable, fmt.Errorf("unknown type %q of a watch event", event.Type)
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

// unexpected returns an error if the object of an event is not of the expected type and kind.
func (s *lwSource) unexpected(event *watch.Event) error {
	if s.expected != nil && reflect.TypeOf(event.Object) != s.expected {
		return fmt.Errorf("the object of a watch event is a %T; expected %s", event.Object, s.expected)
	}
	if event.Object == nil {
		return errors.New("a watch event has no object")
	}
	if s.expectedGVK != nil {
		if gvk := event.Object.GetObjectKind().GroupVersionKind(); gvk != *s.expectedGVK {
			return fmt.Errorf("the object of a watch event is a %s; expected %s", gvk, *s.expectedGVK)
		}
	}
	if gvk, table := isTable(event.Object); table {
		return fmt.Errorf("a watch event is a table (%s), which contains no object; request objects, not tables", gvk)
	}
	return nil
}

// Close stops the watch.
func (e *events) Close() (err error) {
	defer recoverPanic(e.ctx, e.src.recovers(), reasonAfterPanic(e.initial), &err)
	e.w.Stop()
	return nil
}
