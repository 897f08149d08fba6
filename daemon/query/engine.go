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

// Options say how an Engine answers.
type Options struct {
	// Authorizer is asked first. It must be set; AllowAll is one.
	Authorizer Authorizer
	// Limits bound the work of each request.
	Limits Limits
	// MaxLists is how many unfinished lists are held; by default 1000. With one more, the oldest
	// expires.
	MaxLists int
	// MaxAge is how long an unfinished list is held from its first page on; by default 5 minutes.
	MaxAge time.Duration
}

const (
	defaultMaxLists = 1000
	defaultMaxAge   = 5 * time.Minute
)

// Engine answers requests over snapshots. Any number of goroutines may use it.
type Engine[T any] struct {
	auth   Authorizer
	limits Limits
	bytes  func(e *store.Entry[T], dst []byte) []byte
	pages  *pages[T]
	tools  sync.Pool // of *tool
}

// tool is what reading objects needs and the next request can use again.
type tool struct {
	doc Doc
	buf []byte
}

// maxTool is the largest buffer that is kept for the next request.
const maxTool = 1 << 20

// NewEngine makes an Engine. bytes appends the JSON of an entry to dst.
func NewEngine[T any](bytes func(e *store.Entry[T], dst []byte) []byte, o Options) (*Engine[T], error) {
	switch {
	case bytes == nil:
		return nil, errors.New("make a query engine: there is no function for the bytes of an entry")
	case o.Authorizer == nil:
		return nil, errors.New("make a query engine: there is no authorizer; set AllowAll if everybody may see everything")
	}
	if o.MaxLists <= 0 {
		o.MaxLists = defaultMaxLists
	}
	if o.MaxAge <= 0 {
		o.MaxAge = defaultMaxAge
	}
	e := &Engine[T]{auth: o.Authorizer, limits: o.Limits.withDefaults(), bytes: bytes,
		pages: newPages[T](o.MaxLists, o.MaxAge)}
	e.tools.New = func() any { return new(tool) }
	return e, nil
}

// Held is how many unfinished lists are held.
func (e *Engine[T]) Held() int { return e.pages.len() }

// List answers a request. The views are those of the clusters that were asked for. A later page is read
// from those of the first; the views given with it are authorized too, and one of them must be of a
// cluster that the list has.
func (e *Engine[T]) List(ctx context.Context, req Request, views []View[T]) (*Result[T], error) {
	if err := e.authorize(ctx, &req, views); err != nil {
		return nil, err
	}
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
	t := e.tools.Get().(*tool)
	defer e.giveBack(t)
	r := &run[T]{engine: e, req: &req, ctx: ctx, tool: t,
		budget: budget{Limits: e.limits, ctx: ctx, resource: req.Resource, pacing: req.Pace}}
	if req.Continue != "" {
		return e.resume(ctx, r, views)
	}
	l := &heldList[T]{print: req.print(), views: byCluster(views)}
	switch {
	case req.CountOnly:
		return r.count(l)
	case !req.Order.Empty():
		if err := r.sort(l); err != nil {
			return nil, err
		}
	}
	return r.page(l, position{}, nil)
}

// resume goes on with a list. Who may see its clusters no longer gets no further page.
func (e *Engine[T]) resume(ctx context.Context, r *run[T], views []View[T]) (*Result[T], error) {
	h, at, err := e.pages.find(r.req.Continue)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", r.req.Resource, err)
	}
	if h.list.print != r.req.print() {
		return nil, fmt.Errorf("list %s: the continue token belongs to another request; send the same user, selectors, "+
			"order and namespace as for the first page: %w", r.req.Resource, ErrInvalid)
	}
	if !overlap(h.list.views, views) {
		return nil, fmt.Errorf("list %s: the continue token belongs to a list of other clusters; begin the list anew, "+
			"without a token: %w", r.req.Resource, ErrInvalid)
	}
	if err := e.authorize(ctx, r.req, h.list.views); err != nil {
		return nil, err
	}
	return r.page(h.list, at, h)
}

// overlap reports whether a later page may be one of the same list: clusters join and leave between two
// pages, but not all of them.
func overlap[T any](first, later []View[T]) bool {
	return len(later) == 0 || slices.ContainsFunc(first, func(a View[T]) bool {
		return slices.ContainsFunc(later, func(b View[T]) bool { return a.Cluster == b.Cluster })
	})
}

func (e *Engine[T]) authorize(ctx context.Context, req *Request, views []View[T]) error {
	for _, v := range views {
		if err := e.auth.Authorize(ctx, req.User, req.attributes(v.Cluster)); err != nil {
			return fmt.Errorf("list %s: %w", req.Resource, err)
		}
	}
	return nil
}

func (e *Engine[T]) giveBack(t *tool) {
	if cap(t.buf) > maxTool {
		t.buf = nil
	}
	t.doc.Reset(nil)
	e.tools.Put(t)
}

// byCluster leaves the caller's slice as it is.
func byCluster[T any](views []View[T]) []View[T] {
	views = slices.Clone(views)
	slices.SortStableFunc(views, func(a, b View[T]) int { return strings.Compare(a.Cluster, b.Cluster) })
	return views
}
