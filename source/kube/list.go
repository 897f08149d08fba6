package kube

import (
	"context"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
)

// lister is an open list. It holds one response's buffer and no items.
type lister[T any] struct {
	*stream
	src    *Source[T]
	req    metav1.ListOptions
	page   pageReader
	decode func(typeMeta, []byte) (object.Item[T], error)
	keeps  keeps
	paged  bool // the first page is through, so the version stands
	turns  int
	marked string // a continue token that was given before

	version object.Version
	err     error
}

// List opens a stream over the state. The first request is sent here, those for
// further pages by Read when it gets there.
func (s *Source[T]) List(ctx context.Context, opts source.ListOptions) (source.Lister[T], error) {
	l := &lister[T]{stream: newStream(ctx, s.server, "list", s.opts.Buffers), src: s, req: s.opts.request(),
		keeps: keepsOf(opts.Encoded, opts.Shares)}
	l.ownRequests()
	switch opts.Match {
	case source.Consistent:
	case source.Any:
		l.req.ResourceVersion = "0"
	case source.NotOlderThan:
		if opts.Version != "" {
			l.req.ResourceVersion = string(opts.Version)
			l.req.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
		}
	default:
		l.Close()
		return nil, fmt.Errorf("%s: unknown match %d; use Consistent, Any or NotOlderThan", l.what(), opts.Match)
	}
	l.req.Limit = int64(s.opts.PageSize)
	switch {
	case opts.PageSize > 0:
		l.req.Limit = int64(opts.PageSize)
	case opts.PageSize == source.OnePage:
		l.req.Limit = 0
	}
	if err := l.open(); err != nil {
		return nil, l.failure(err)
	}
	return l, nil
}

// open asks for the next page.
func (l *lister[T]) open() error {
	body, w, err := l.src.get(l.ctx, "list", l.req, l.src.codec.listAccept)
	if err != nil {
		return err
	}
	if err := l.attach(body); err != nil {
		return err
	}
	if l.decode, err = l.src.decoder(w, l.keeps); err != nil {
		return garbled(err)
	}
	l.page = w.list(&l.in)
	return nil
}

// Version is the first page's version: at that or any later one the changes
// since can be followed.
func (l *lister[T]) Version() object.Version { return l.version }

// Read appends the items that have arrived, waiting for one if there is none.
func (l *lister[T]) Read(buf []object.Item[T]) ([]object.Item[T], error) {
	start := len(buf)
	for l.err == nil {
		item, ok, err := l.next(len(buf) == start)
		switch {
		case err != nil:
			l.err = l.failure(err)
		case ok:
			buf = append(buf, item)
		case len(buf) > start:
			return buf, nil
		}
	}
	if len(buf) > start { // the error is there for the next call
		return buf, nil
	}
	return buf, l.err
}

// next reads one item. Without one, ok is false: because it must not block, or
// because it has just gone over to another page.
func (l *lister[T]) next(block bool) (item object.Item[T], ok bool, err error) {
	if err := l.alive(); err != nil {
		return item, false, err
	}
	if l.page == nil {
		if !block {
			return item, false, nil
		}
		if err := l.open(); err != nil {
			return item, false, err
		}
	}
	raw, ok, err := l.page.next(block)
	if l.page.head().hasMeta && !l.paged {
		l.version = object.Version(l.page.head().version)
	}
	if err == io.EOF {
		return item, false, l.turn()
	}
	if !ok {
		return item, false, err
	}
	kind, err := l.page.head().item()
	if err != nil {
		return item, false, garbled(err)
	}
	item, err = l.decode(kind, raw)
	if errors.Is(err, errWrongKind) {
		return item, false, garbled(err)
	}
	if err != nil {
		return undecodable(item, fmt.Errorf("%s: decode %q: %w", l.what(), item.Key, err)), true, nil
	}
	return item, true, nil
}

// undecodable is an item that is there and cannot be read: it has its name, and
// a decoder that says why.
func undecodable[T any](item object.Item[T], err error) object.Item[T] {
	return object.Item[T]{Key: item.Key, Version: item.Version, UID: item.UID, Size: item.Size,
		Decode: func([]byte) (T, error) { var none T; return none, err }}
}

// turn ends a page and prepares the next, or ends the list.
func (l *lister[T]) turn() error {
	head := l.page.head()
	if _, err := head.item(); err != nil {
		return garbled(err)
	}
	l.release()
	l.page, l.paged = nil, true
	switch head.cont {
	case "":
		return io.EOF
	case l.req.Continue, l.marked:
		return garbled(errors.New("the server gave the same continue token twice: the list would never end"))
	}
	// Tokens may go in a longer circle. One of them is kept in mind, each for twice as
	// many pages as the one before, so that a circle of any length comes upon it.
	if l.turns++; l.turns&(l.turns-1) == 0 {
		l.marked = head.cont
	}
	// The token stands for version and match; the server refuses them beside it.
	l.req.Continue, l.req.ResourceVersion, l.req.ResourceVersionMatch = head.cont, "", ""
	return nil
}
