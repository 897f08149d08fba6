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
	"github.com/mirador-k8s/mirador/store"
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
	fetched   byte  // of fetch; nobody reads it
}

// Watch opens a watch.
func (s *lwSource) Watch(ctx context.Context, opts source.WatchOptions) (source.Watcher[any], error) {
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

// Read waits for an event, then takes all that are there.
func (e *events) Read(buf []source.Change[any]) ([]source.Change[any], error) {
	if e.failed != nil {
		return buf, e.failed
	}
	var event watch.Event
	var open bool
	select {
	case event, open = <-e.w.ResultChan():
	case <-e.ctx.Done():
		return buf, context.Cause(e.ctx)
	}
	for limit := len(buf) + readAtOnce; ; {
		if !open {
			return buf, e.closed()
		}
		var err error
		if buf, err = e.take(event, buf); err != nil || len(buf) >= limit {
			return buf, err
		}
		select {
		case event, open = <-e.w.ResultChan():
		default:
			return buf, nil
		}
	}
}

// take makes changes of an event and of those behind it that are there, as many as the store fetches at once: all of them are
// taken before the first is looked at.
func (e *events) take(first watch.Event, buf []source.Change[any]) ([]source.Change[any], error) {
	var group [store.Together]watch.Event
	group[0] = first
	n, open := 1, true
	for more := true; more && open && n < len(group); {
		select {
		case group[n], open = <-e.w.ResultChan():
			if open {
				n++
			}
		default:
			more = false
		}
	}
	if n > 1 {
		e.fetch(group[:n])
	}
	for i := range group[:n] {
		if group[i].Type == watch.Error {
			e.failed = e.src.streamError(apierrors.FromObject(group[i].Object))
			return buf, e.failed
		}
		e.heard++
		buf = append(buf, e.change(group[i]))
	}
	if !open {
		return buf, e.closed()
	}
	return buf, nil
}

// fetch reads the first bytes of every name. Where nobody has looked at the objects for a while, each name waits for
// memory twice; read like this, they wait at the same time. Without it, half of the time of reading an event was spent there.
func (e *events) fetch(group []watch.Event) {
	var sum byte
	for i := range group {
		if group[i].Type == watch.Error {
			break // the stream ends here
		}
		if e.src.expected != nil && reflect.TypeOf(group[i].Object) != e.src.expected {
			continue
		}
		if m, ok := group[i].Object.(metav1.Object); ok {
			if s := m.GetNamespace(); s != "" {
				sum += s[0]
			}
			if s := m.GetName(); s != "" {
				sum += s[0]
			}
			sum += byte(len(m.GetResourceVersion()))
		}
	}
	e.fetched = sum
}

// closed says what the end of the stream means.
func (e *events) closed() error {
	switch {
	case e.initial && e.heard > 0:
		// Cut off in the middle: worth another try, once.
		if e.src.cutShort++; e.src.cutShort%2 == 1 {
			return &source.Error{Reason: source.Unavailable, Err: fmt.Errorf("the watch ended before its initial state was complete: %w", io.ErrUnexpectedEOF)}
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

// change makes a change of an event.
func (e *events) change(event watch.Event) source.Change[any] {
	if err := e.src.unexpected(event); err != nil {
		return source.Change[any]{Type: source.Undecodable, Err: err}
	}
	if event.Type == watch.Bookmark {
		return e.bookmark(event)
	}
	it := e.src.item(event.Object)
	c := source.Change[any]{Item: it}
	switch event.Type {
	case watch.Added:
		c.Type, c.New = source.Put, true
		if e.unordered {
			c.Item.Version = ""
		}
		return c
	case watch.Modified:
		c.Type = source.Put
	case watch.Deleted:
		c.Type = source.Gone
	default:
		return source.Change[any]{Type: source.Undecodable, Item: it, Err: fmt.Errorf("there is no watch event of type %q", event.Type)}
	}
	e.unordered = false
	return c
}

func (e *events) bookmark(event watch.Event) source.Change[any] {
	e.unordered = false
	m, err := meta.Accessor(event.Object)
	if err != nil {
		return source.Change[any]{Type: source.Undecodable, Err: fmt.Errorf("reading a bookmark: %w", err)}
	}
	end := m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
	if end && e.initial {
		e.initial, e.src.cutShort = false, 0
	}
	return source.Change[any]{
		Type:       source.Bookmark,
		Item:       object.Item[any]{Version: object.Version(m.GetResourceVersion())},
		InitialEnd: end,
	}
}

// unexpected says what is wrong with an event that is not about the objects that
// were asked for.
func (s *lwSource) unexpected(event watch.Event) error {
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
func (e *events) Close() error {
	e.w.Stop()
	return nil
}
