package query

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/mirador-k8s/mirador/store"
)

// View is a snapshot of a resource in one cluster.
type View[T any] struct {
	Cluster  string
	Snapshot *store.Snapshot[T]
	// Bytes appends the JSON of an entry to dst, as selectors, expressions and orders see it; nil means the Engine's
	// function. It may change everything except the object's labels.
	Bytes func(e *store.Entry[T], dst []byte) []byte
	// Visible is what the user of the request may see; nil means everything. Nothing else is counted, paged or evaluated.
	Visible *Visible
}

// restricted reports whether only a part of the view is visible.
func (v *View[T]) restricted() bool { return v.Visible != nil && !v.Visible.All }

// Request is one list, or one page of it.
type Request struct {
	// User identifies the user, in any unambiguous form. A continue token belongs to its user.
	User string
	// Group, Version and Resource are what is listed, for continue tokens and errors; what is read depends on the views.
	Group, Version, Resource string
	// Namespace is the namespace to list, or "" for all.
	Namespace string
	// Scope identifies the set of clusters that the client asked for, in any unambiguous form: one cluster, all, or a
	// list of names. A continue token is bound to the scope, not to the views, so that clusters may join between two
	// pages.
	Scope     string
	Selection Selection
	Order     Order
	// Limit is the maximal number of items in a page; 0 means all.
	Limit int
	// Continue is the token from the previous page. Except for the limit, the rest of the request must be the same.
	Continue string
	// Resume continues a list that is no longer held, instead of Continue, if the views are those of its first page, read
	// again. It may be nil.
	Resume *Resume
	// CountOnly asks for the number of objects instead of the objects.
	CountOnly bool
	// Pace is called every few objects with the number of bytes that the request holds, without the snapshots and their
	// objects. It may wait, to leave the processor to others; an error ends the request. It may be nil.
	Pace func(held int64) error
	// OnDrop is called when the list is no longer held for another page, from any goroutine. It is not called if the
	// answer has no continue token. It must not block or call the Engine. It may be nil.
	OnDrop func()
}

// fingerprint is the same for all pages of a list.
func (r *Request) fingerprint() [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q %q %s %q",
		r.User, r.Group, r.Version, r.Resource, r.Namespace, r.Scope, r.Selection, r.Order))
}

// check returns an error if the request is invalid.
func (r *Request) check() error {
	switch {
	case r.Limit < 0:
		return fmt.Errorf("list %s: the limit is %d; give a positive one, or none: %w", r.Resource, r.Limit, ErrInvalid)
	case r.CountOnly && (r.Continue != "" || r.Resume != nil):
		return fmt.Errorf("count %s: a count has no pages; leave the continue token out: %w", r.Resource, ErrInvalid)
	}
	return nil
}

// Resume is what continues a list besides its views.
type Resume struct {
	// Request stands for the request of the list.
	Request [16]byte
	// Served is how many items its pages have had.
	Served int
	// Begun is when it was begun. It expires when it is as old as lists that are held may be.
	Begun time.Time
}

// CheckResume returns the error of List if the Resume of a request is of another request or has expired.
func (e *Engine[T]) CheckResume(req *Request) error {
	own := req.fingerprint()
	switch {
	case req.Resume.Request != [16]byte(own[:]):
		return errOtherRequest(req)
	case time.Since(req.Resume.Begun) >= e.pages.age:
		return fmt.Errorf("list %s: %w", req.Resource, errNotHeld)
	}
	return nil
}

// Item is one object of an answer.
type Item[T any] struct {
	Cluster string
	Entry   *store.Entry[T]
}

// Unknown is the number of remaining items if counting them would mean reading all objects.
const Unknown = -1

// Result is the answer to a Request.
type Result[T any] struct {
	// Items are the objects in the requested order.
	Items []Item[T]
	// Count is how many objects match, if Request.CountOnly is set.
	Count int
	// Remaining is how many items come after this page, or Unknown.
	Remaining int
	// Continue is the token for the next page; "" after the last.
	Continue string
	// Next is how the next page can be read when the list is no longer held.
	Next Resume
	// Views are what the answer was read from, sorted by cluster. For a later page they are those of the first one.
	Views []View[T]
}
