package source

import (
	"context"
	"time"

	"github.com/mirador-k8s/mirador/object"
)

// Source is a set of objects that can be listed and watched.
type Source[T any] interface {
	// List opens a stream of the state.
	List(ctx context.Context, opts ListOptions) (Lister[T], error)
	// Watch opens a stream of changes.
	Watch(ctx context.Context, opts WatchOptions) (Watcher[T], error)
	// Describe returns a description of the source for logs, metrics and errors.
	Describe() Description
}

// Description identifies a source.
type Description struct {
	// Cluster is the name of the cluster; it may be empty.
	Cluster string
	// Resource is the resource, such as "pods" or "deployments.apps".
	Resource string
	// Scope is the namespace and the selectors; "" for all objects.
	Scope string
	// InitialState reports whether Watch supports WatchOptions.InitialState.
	InitialState bool
}

// String returns the description in the form cluster/resource[scope].
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

// Match is how fresh a list must be.
type Match uint8

const (
	// Consistent requests the newest state; Version is ignored.
	Consistent Match = iota
	// Any accepts the state that is cheapest for the source, however old.
	Any
	// NotOlderThan accepts any state at Version or later.
	NotOlderThan
)

// OnePage is the ListOptions.PageSize of a list in one page.
const OnePage = -1

// ListOptions configure List.
type ListOptions struct {
	// Match is how fresh the state must be. NotOlderThan needs Version.
	Match   Match
	Version object.Version
	// PageSize bounds the objects of one page. 0 leaves it to the source; OnePage requests
	// the whole list in one page. All pages arrive on the same stream.
	PageSize int
	// Encoded means that the reader keeps objects encoded. A source that has their bytes
	// delivers them in Item.Encoded.
	Encoded bool
	// Shares means that the reader shares equal parts of objects itself, so that the source
	// need not share equal strings.
	Shares bool
}

// WatchOptions configure Watch.
type WatchOptions struct {
	// Version is the version after which the changes begin.
	Version object.Version
	// InitialState requests the state first, as changes of type Added, completed by a
	// Bookmark with InitialEnd. The state is at Version or later; "" requests the newest.
	InitialState bool
	// Timeout is the time after which the source should end the stream; 0 leaves it to
	// the source.
	Timeout time.Duration
	// Encoded and Shares are as in ListOptions.
	Encoded, Shares bool
}

// Lister is an open list.
type Lister[T any] interface {
	// Read appends the available items to buf: at least one, unless the list has ended or
	// failed. At the end it returns io.EOF and no items.
	Read(buf []object.Item[T]) ([]object.Item[T], error)
	// Version returns the version of the list. It is valid once Read has returned io.EOF,
	// and may be valid before.
	Version() object.Version
	// Close ends the list and releases its resources. It may be called at any time.
	Close() error
}

// Change is one entry of a watch.
type Change[T any] struct {
	// Type is Added, Updated, Deleted, Bookmark or Undecodable.
	Type object.ChangeType
	// Item is the object; for Deleted, its last state. A Bookmark has only a Version, and an
	// Undecodable only those of key and version that could be read.
	Item object.Item[T]
	// InitialEnd marks the Bookmark that completes the initial state.
	InitialEnd bool
	// Err is the reason why an object is Undecodable.
	Err error
}

// Watcher is an open watch.
type Watcher[T any] interface {
	// Read appends the available changes to buf: at least one, unless the watch has ended or
	// failed. At a normal end it returns io.EOF. It may return changes together with an
	// error; the changes are valid.
	Read(buf []Change[T]) ([]Change[T], error)
	// Close ends the watch and makes a blocked Read return.
	Close() error
}
