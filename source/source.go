package source

import (
	"context"
	"time"

	"github.com/mirador-k8s/mirador/object"
)

// Source is a state that changes and that can be read and followed.
type Source[T any] interface {
	// List opens a stream over the state.
	List(ctx context.Context, opts ListOptions) (Lister[T], error)
	// Watch opens a stream of changes.
	Watch(ctx context.Context, opts WatchOptions) (Watcher[T], error)
	// Describe names the source for logs, metrics and errors.
	Describe() Description
}

// Description names a source.
type Description struct {
	// Cluster is where the objects live; "" where there is only one.
	Cluster string
	// Resource is what they are: "pods", "deployments.apps".
	Resource string
	// Scope narrows them: a namespace, a selector; "" for all.
	Scope string
	// InitialState says whether Watch may be asked for the state too.
	InitialState bool
}

// String gives the description in one word for a log line.
func (d Description) String() string {
	s := d.Resource
	if d.Scope != "" {
		s += "[" + d.Scope + "]"
	}
	if d.Cluster != "" {
		s = d.Cluster + "/" + s
	}
	return s
}

// Match says how ListOptions.Version is meant.
type Match uint8

const (
	// Consistent asks for the newest state there is; Version is not looked at.
	Consistent Match = iota
	// Any takes whatever state is cheapest to have, however old.
	Any
	// NotOlderThan takes any state at Version or later.
	NotOlderThan
)

// OnePage is the ListOptions.PageSize of a list that comes in one piece.
const OnePage = -1

// ListOptions choose what List reads.
type ListOptions struct {
	// Match says how fresh the state must be, with Version where it needs one.
	Match   Match
	Version object.Version
	// PageSize bounds one page; 0 leaves it to the source, OnePage asks for the whole
	// list in one piece. All pages arrive on the one stream.
	PageSize int
	// Encoded says that the reader keeps objects encoded: a source that has their
	// bytes delivers them as Item.Encoded.
	Encoded bool
	// Shares says that the reader finds equal parts of objects itself, so that a source need not
	// make equal strings one.
	Shares bool
}

// WatchOptions choose what Watch follows.
type WatchOptions struct {
	// Version is where the changes start: the first one is the first after it.
	Version object.Version
	// InitialState asks for the state first, as changes of type Added, closed by a
	// Bookmark with InitialEnd. The state is at Version or later; "" asks for the
	// newest.
	InitialState bool
	// Timeout is when the source should end the stream by itself; 0 leaves it to
	// the source.
	Timeout time.Duration
	// Encoded and Shares are as in ListOptions.
	Encoded, Shares bool
}

// Lister is an open list.
type Lister[T any] interface {
	// Read appends to buf the items that can be had: at least one, unless the
	// list is at its end or has failed. The end is io.EOF, and comes with no items.
	Read(buf []object.Item[T]) ([]object.Item[T], error)
	// Version is the list's version; known from the first Read on, at the latest
	// when Read has returned io.EOF.
	Version() object.Version
	// Close ends the list and frees what it holds. It may be called at any time.
	Close() error
}

// Change is one entry of a watch.
type Change[T any] struct {
	// Type is Added, Updated, Deleted, Bookmark or Undecodable.
	Type object.ChangeType
	// Item is the object; for Deleted, its last state. A Bookmark has only a Version, and an Undecodable the key and
	// version as far as they could be read.
	Item object.Item[T]
	// InitialEnd marks the Bookmark that closes the initial state.
	InitialEnd bool
	// Err is why an object is Undecodable.
	Err error
}

// Watcher is an open watch.
type Watcher[T any] interface {
	// Read appends to buf the changes that can be had: at least one, unless the
	// watch is at its end or has failed. A normal end is io.EOF. Changes and an
	// error may come together: the changes count.
	Read(buf []Change[T]) ([]Change[T], error)
	// Close ends the watch and makes a blocked Read return.
	Close() error
}
