package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
)

// watcher is an open watch.
type watcher[T any] struct {
	*stream
	wire    wire
	frames  framer
	decode  func(typeMeta, []byte) (object.Item[T], error)
	initial bool
	keeps   keeps
	err     error
}

// Watch opens a watch. It returns when the server has accepted the request.
func (s *Source[T]) Watch(ctx context.Context, opts source.WatchOptions) (source.Watcher[T], error) {
	if opts.InitialState && s.opts.WithoutInitialState {
		return nil, &source.Error{Reason: source.Unsupported,
			Err: fmt.Errorf("%s: initial state is disabled by Options.WithoutInitialState; list first", s.attempt("watch"))}
	}
	req := s.opts.request()
	req.Watch = true
	req.AllowWatchBookmarks = true
	req.ResourceVersion = string(opts.Version)
	if opts.InitialState {
		yes := true
		req.SendInitialEvents = &yes
		req.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	}
	if opts.Timeout > 0 {
		seconds := int64((opts.Timeout + time.Second - 1) / time.Second)
		req.TimeoutSeconds = &seconds
	}
	w := &watcher[T]{stream: newStream(ctx, s.server, "watch", s.opts.Buffers), initial: opts.InitialState,
		keeps: keepsOf(opts.Encoded, opts.Shares)}
	if err := w.open(s, req); err != nil {
		return nil, w.failure(err)
	}
	return w, nil
}

func (w *watcher[T]) open(s *Source[T], req metav1.ListOptions) error {
	body, wire, err := s.get(w.ctx, "watch", req, s.codec.watchAccept)
	if err != nil {
		return err
	}
	if err := w.attach(body); err != nil {
		return err
	}
	if w.decode, err = s.decoder(wire, w.keeps); err != nil {
		return garbled(err)
	}
	w.wire, w.frames = wire, wire.frames(&w.in)
	return nil
}

// Read appends the changes that have arrived. It waits if there is none.
func (w *watcher[T]) Read(buf []source.Change[T]) ([]source.Change[T], error) {
	start := len(buf)
	for w.err == nil {
		change, ok, err := w.next(len(buf) == start)
		switch {
		case err != nil:
			w.err = w.failure(err)
		case ok:
			buf = append(buf, change)
		case len(buf) > start:
			return buf, nil
		}
	}
	if len(buf) > start { // the next call returns the error
		return buf, nil
	}
	return buf, w.err
}

func (w *watcher[T]) next(block bool) (change source.Change[T], ok bool, err error) {
	if err := w.alive(); err != nil {
		return change, false, err
	}
	frame, ok, err := w.frames.next(block)
	if !ok {
		return change, false, err
	}
	e, err := w.wire.event(frame)
	if err != nil {
		return change, false, garbled(err)
	}
	change, err = w.change(e)
	return change, err == nil, err
}

// change converts an event to a change, or an ERROR event to an error.
func (w *watcher[T]) change(e event) (source.Change[T], error) {
	switch e.what {
	case eventError:
		return source.Change[T]{}, w.serverError(e)
	case eventBookmark:
		return w.bookmark(e), nil
	}
	var change source.Change[T]
	err := e.err
	if err == nil {
		change.Item, err = w.decode(e.typeMeta, e.object)
	}
	switch e.what {
	case eventAdded:
		change.Type = object.Added
	case eventModified:
		change.Type = object.Updated
	case eventDeleted:
		change.Type = object.Deleted
	default:
		err = errors.Join(fmt.Errorf("unknown event %q", e.what), err)
	}
	switch {
	case err == nil:
		return change, nil
	case e.what != eventDeleted:
		return w.undecodable(change.Item, err), nil
	case change.Item.Key == "":
		// An unknown object was deleted. Only a list can show which one.
		return source.Change[T]{}, &source.Error{Reason: source.Expired,
			Err: fmt.Errorf("%s: a delete event cannot be read: %w", w.what(), err)}
	}
	// The object was deleted, although its last state cannot be decoded.
	change.Item = undecodable(change.Item, fmt.Errorf("%s: decode %q: %w", w.what(), change.Item.Key, err))
	return change, nil
}

// undecodable returns the change for an object that cannot be decoded, with its name only.
func (w *watcher[T]) undecodable(item object.Item[T], err error) source.Change[T] {
	return source.Change[T]{
		Type: object.Undecodable,
		Item: object.Item[T]{Key: item.Key, Version: item.Version, UID: item.UID},
		Err:  fmt.Errorf("%s: decode %q: %w", w.what(), item.Key, err),
	}
}

func (w *watcher[T]) bookmark(e event) source.Change[T] {
	meta, err := metav1.ObjectMeta{}, e.err
	if err == nil {
		meta, err = w.wire.meta(e.object)
	}
	if err == nil && meta.ResourceVersion == "" {
		err = errors.New("a bookmark without a version")
	}
	if err != nil {
		return w.undecodable(object.Item[T]{}, err)
	}
	return source.Change[T]{
		Type:       object.Bookmark,
		Item:       object.Item[T]{Version: object.Version(meta.ResourceVersion)},
		InitialEnd: meta.Annotations[metav1.InitialEventsAnnotationKey] == "true",
	}
}

// serverError classifies an ERROR event.
func (w *watcher[T]) serverError(e event) error {
	status, err := metav1.Status{}, e.err
	if err == nil {
		status, err = w.wire.status(e.typeMeta, e.object)
	}
	if err != nil {
		return garbled(fmt.Errorf("the server reported an error that cannot be read: %w", err))
	}
	if status.Code == http.StatusInternalServerError && status.Reason != metav1.StatusReasonExpired {
		// The server itself cannot decode an object, for example a corrupt object that is
		// being deleted. Resuming the watch would fail there again.
		status.Code, status.Reason = http.StatusGone, metav1.StatusReasonExpired
	}
	return statusError("watch", status, 0, w.initial)
}
