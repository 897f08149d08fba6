package query

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/mirador-k8s/mirador/store"
)

// View is what a request sees of one cluster: a resource at one moment.
type View[T any] struct {
	Cluster  string
	Snapshot *store.Snapshot[T]
	// Bytes appends the JSON of an entry to dst as selectors, expressions and orders see it; nil is the Engine's
	// own function. It may change anything but the object's labels.
	Bytes func(e *store.Entry[T], dst []byte) []byte
}

// Request is one list, or one page of it.
type Request struct {
	User User
	// Verb is "list" if it is empty.
	Verb string
	// Group, Version and Resource are for the authorizer; the views say what is read.
	Group, Version, Resource string
	// Namespace is the namespace to list, or "" for all.
	Namespace string
	// Scope is how the caller was asked for its clusters, in whatever form tells such questions apart:
	// the one cluster "eu", all, or all of "eu,us". A continue token is bound to it, not to the
	// views, so that a cluster that joins between two pages changes nothing.
	Scope     string
	Selection Selection
	Order     Order
	// Limit is how many items a page has at most; 0 means all.
	Limit int
	// Continue is the token of the page before. The rest of the request must be the same, but for
	// the limit.
	Continue string
	// CountOnly asks for the number of objects instead of the objects.
	CountOnly bool
	// Pace is called every few objects with the number of bytes that the request holds, the snapshots and the objects
	// in them not counted. It may wait, to leave the processor to others; an error ends the request. It may be nil.
	Pace func(held int64) error
}

// print is the same for requests that a token may go on with.
func (r *Request) print() [sha256.Size]byte {
	groups := slices.Sorted(slices.Values(r.User.Groups))
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q %q %q %q %s %q",
		r.User.Name, groups, r.verb(), r.Group, r.Version, r.Resource, r.Namespace, r.Scope, r.Selection, r.Order))
}

func (r *Request) verb() string {
	if r.Verb == "" {
		return "list"
	}
	return r.Verb
}

// attributes are what the authorizer is asked, for one cluster.
func (r *Request) attributes(cluster string) Attributes {
	name, _ := r.Selection.Name()
	return Attributes{Verb: r.verb(), Cluster: cluster, Group: r.Group, Version: r.Version, Resource: r.Resource,
		Namespace: r.Namespace, Name: name}
}

// check finds what no request may have.
func (r *Request) check() error {
	switch {
	case r.Limit < 0:
		return fmt.Errorf("list %s: the limit is %d; give a positive one, or none: %w", r.Resource, r.Limit, ErrInvalid)
	case r.CountOnly && r.Continue != "":
		return fmt.Errorf("count %s: a count has no pages; leave the continue token out: %w", r.Resource, ErrInvalid)
	}
	return nil
}

// Item is one object of an answer.
type Item[T any] struct {
	Cluster string
	Entry   *store.Entry[T]
}

// Unknown is a number of remaining items that is not known: finding out would take looking at all
// objects.
const Unknown = -1

// Result is the answer to a Request.
type Result[T any] struct {
	// Items are the objects in their order.
	Items []Item[T]
	// Count is how many objects match, where only that was asked for.
	Count int
	// Remaining is how many items come after this page, or Unknown.
	Remaining int
	// Continue is the token for the next page; "" after the last.
	Continue string
	// Views are what the answer was read from, by cluster. On a later page they are those of the first.
	Views []View[T]
}
