package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mirador-k8s/mirador/store"
)

// options configure an Engine, for tests; 0 means the default.
type options struct {
	// limits bound the work of each request.
	limits limits
	// maxLists is how many unfinished lists are held; by default 1000. Beyond that, the oldest of the user that
	// holds the most expires.
	maxLists int
	// maxAge is how long an unfinished list is held from its first page on; by default 5 minutes.
	maxAge time.Duration
}

const (
	defaultMaxLists = 1000
	defaultMaxAge   = 5 * time.Minute
)

// Engine answers requests over snapshots. It is safe for concurrent use.
type Engine[T any] struct {
	limits  limits
	bytes   func(e *store.Entry[T], dst []byte) []byte
	pages   *pages[T]
	scratch sync.Pool // of *scratch
}

// scratch is what a request needs to read objects. It is recycled.
type scratch struct {
	doc Doc
	buf []byte
}

// maxScratch is the size of the largest buffer that is recycled.
const maxScratch = 1 << 20

// NewEngine returns an Engine. bytes appends the JSON of an entry to dst.
func NewEngine[T any](bytes func(e *store.Entry[T], dst []byte) []byte) (*Engine[T], error) {
	return newEngineWith(bytes, options{})
}

func newEngineWith[T any](bytes func(e *store.Entry[T], dst []byte) []byte, o options) (*Engine[T], error) {
	if bytes == nil {
		return nil, errors.New("make a query engine: there is no function for the bytes of an entry")
	}
	if o.maxLists <= 0 {
		o.maxLists = defaultMaxLists
	}
	if o.maxAge <= 0 {
		o.maxAge = defaultMaxAge
	}
	e := &Engine[T]{limits: o.limits.withDefaults(), bytes: bytes,
		pages: newPages[T](o.maxLists, o.maxAge)}
	e.scratch.New = func() any { return new(scratch) }
	return e, nil
}

// List answers a request over the views of the requested clusters. A later page is read from the views of the first
// one. The views given with it say what is visible now, and one of them must be of a cluster of the list.
func (e *Engine[T]) List(ctx context.Context, req Request, views []View[T]) (*Result[T], error) {
	if err := req.check(); err != nil {
		return nil, err
	}
	for _, v := range views {
		if v.Snapshot == nil {
			return nil, fmt.Errorf("list %s: there is no snapshot of cluster %q", req.Resource, v.Cluster)
		}
	}
	ctx, cancel := e.limits.within(ctx, req.Resource)
	defer cancel()
	t := e.scratch.Get().(*scratch)
	defer e.giveBack(t)
	r := &run[T]{engine: e, req: &req, ctx: ctx, scratch: t,
		budget: budget{limits: e.limits, ctx: ctx, resource: req.Resource, pacing: req.Pace}}
	if req.Continue != "" {
		return e.resume(r, views)
	}
	l := &heldList[T]{user: req.User, fingerprint: req.fingerprint(), views: byCluster(views), begun: time.Now(),
		onDrop: req.OnDrop}
	var at position
	if req.Resume != nil {
		if err := e.CheckResume(&req); err != nil {
			return nil, err
		}
		l.begun, at.served, r.skip = req.Resume.Begun, req.Resume.Served, req.Resume.Served
	}
	switch {
	case req.CountOnly:
		return r.count(l)
	case !req.Order.Empty():
		if err := r.sort(l); err != nil {
			return nil, err
		}
	}
	return r.page(l, at, nil)
}

// DropLists drops the unfinished lists of a user that have a Request.OnDrop. Their continue tokens expire.
func (e *Engine[T]) DropLists(user string) { e.pages.dropOf(user) }

// resume continues a list, if the same objects are visible as at its beginning.
func (e *Engine[T]) resume(r *run[T], views []View[T]) (*Result[T], error) {
	h, at, err := e.pages.find(r.req.Continue)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", r.req.Resource, err)
	}
	if h.list.fingerprint != r.req.fingerprint() {
		return nil, errOtherRequest(r.req)
	}
	if !overlap(h.list.views, views) {
		return nil, fmt.Errorf("list %s: the continue token belongs to a list of other clusters; start the list again, "+
			"without a token: %w", r.req.Resource, ErrInvalid)
	}
	if !sameVisible(h.list.views, views) {
		e.pages.drop(h)
		return nil, fmt.Errorf("list %s: what the user may see has changed: %w; start the list again, without a token",
			r.req.Resource, ErrExpired)
	}
	return r.page(h.list, at, h)
}

func errOtherRequest(req *Request) error {
	return fmt.Errorf("list %s: the continue token belongs to another request; send the same user, selectors, "+
		"order and namespace as for the first page: %w", req.Resource, ErrInvalid)
}

// overlap reports whether a later page can belong to the same list: clusters may join and leave between two pages, but
// not all of them.
func overlap[T any](first, later []View[T]) bool {
	return len(later) == 0 || slices.ContainsFunc(first, func(a View[T]) bool {
		return slices.ContainsFunc(later, func(b View[T]) bool { return a.Cluster == b.Cluster })
	})
}

// sameVisible reports whether the same is visible in later views as in the first ones. A cluster that has left may
// still be listed only if everything is visible anyway: what a user may see there is no longer known.
func sameVisible[T any](first, later []View[T]) bool {
	return !slices.ContainsFunc(first, func(a View[T]) bool {
		i := slices.IndexFunc(later, func(b View[T]) bool { return a.Cluster == b.Cluster })
		if i < 0 {
			return a.Visible != nil
		}
		b := later[i].Visible
		return (a.Visible == nil) != (b == nil) || b != nil && !a.Visible.Equal(b)
	})
}

func (e *Engine[T]) giveBack(t *scratch) {
	if cap(t.buf) > maxScratch {
		t.buf = nil
	}
	t.doc.Reset(nil)
	e.scratch.Put(t)
}

// byCluster returns a copy of views sorted by cluster.
func byCluster[T any](views []View[T]) []View[T] {
	views = slices.Clone(views)
	slices.SortStableFunc(views, func(a, b View[T]) int { return strings.Compare(a.Cluster, b.Cluster) })
	return views
}
