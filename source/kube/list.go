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

// lister is an open list. It holds the buffer of one response and no items.
type lister[T any] struct {
	*stream
	src    *Source[T]
	req    metav1.ListOptions
	page   pageReader
	decode func(typeMeta, []byte) (object.Item[T], error)
	keeps  keeps
	paged  bool // the first page was read, so the version is final
	turns  int
	marked string // an earlier continue token

	version object.Version
	err     error
}

// List opens a list. It sends the first request; Read sends those for further pages.
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

// open requests the next page.
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

// Version returns the version of the first page. A watch from there sees every change
// since any of the pages.
func (l *lister[T]) Version() object.Version { return l.version }

// Read appends the items that have arrived. It waits if there is none.
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
	if len(buf) > start { // the next call returns the error
		return buf, nil
	}
	return buf, l.err
}

// next reads one item. ok is false if none has arrived and block is false, or if another
// page was opened.
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

// undecodable returns an item for an object that exists but cannot be decoded: it has the
// object's name, and its Decode returns err.
func undecodable[T any](item object.Item[T], err error) object.Item[T] {
	return object.Item[T]{Key: item.Key, Version: item.Version, UID: item.UID, Size: item.Size,
		Decode: func([]byte) (T, error) { var none T; return none, err }}
}

// turn ends a page and prepares the request for the next, or ends the list.
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
		return garbled(errors.New("the server sent the same continue token twice: the list would never end"))
	}
	// Tokens may repeat after several pages. Remember one token, each for twice as many
	// pages as the one before, so that a cycle of any length is detected.
	if l.turns++; l.turns&(l.turns-1) == 0 {
		l.marked = head.cont
	}
	// The token includes version and match; the server rejects a request that has both.
	l.req.Continue, l.req.ResourceVersion, l.req.ResourceVersionMatch = head.cont, "", ""
	return nil
}
