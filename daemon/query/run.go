package query

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// run is the work of one request.
type run[T any] struct {
	engine  *Engine[T]
	req     *Request
	ctx     context.Context
	scratch *scratch
	budget  budget
	skip    int   // how many items earlier pages have had, of a list that is resumed
	stopped error // why a walk has ended early
}

// position is where a page begins: after a key of a view or, in a sorted list, at index served.
type position struct {
	view   int
	after  object.Key
	served int
}

// page returns the page that begins at a position. h is nil if the list is not held yet.
func (r *run[T]) page(l *heldList[T], at position, h *held[T]) (*Result[T], error) {
	res := &Result[T]{Views: l.views}
	next, more, err := r.fill(l, at, res)
	if err != nil {
		return nil, err
	}
	if !more {
		r.engine.pages.drop(h)
		return res, nil
	}
	res.Next = Resume{Request: [16]byte(l.fingerprint[:]), Served: next.served, Begun: l.begun}
	res.Remaining = Unknown
	if l.total != nil {
		res.Remaining = *l.total - next.served
	}
	res.Continue = r.engine.pages.keep(h, l, next)
	return res, nil
}

func (r *run[T]) fill(l *heldList[T], at position, res *Result[T]) (next position, more bool, err error) {
	if l.sorted != nil {
		return r.fillSorted(l, at, res)
	}
	for v := at.view; v < len(l.views); v++ {
		after := at.after
		if v > at.view {
			after = ""
		}
		next, more, err = r.fillFrom(l, v, after, res)
		if err != nil || more {
			next.served = at.served + len(res.Items)
			if more {
				r.total(l)
				err = r.stopped
			}
			return next, more, err
		}
	}
	if r.skip > 0 {
		return position{}, false, errNotHeld // the views are others
	}
	return position{}, false, nil
}

// fillFrom adds items of a view. When the page is full, it continues until the next matching object, so that the next
// page begins there and no object is read twice.
func (r *run[T]) fillFrom(l *heldList[T], v int, after object.Key, res *Result[T]) (position, bool, error) {
	view := &l.views[v]
	entries, sel := r.inOrder(view, after)
	for e := range entries {
		ok, err := r.matches(sel, view, e)
		if err != nil {
			return position{}, false, err
		}
		switch {
		case !ok:
		case r.skip > 0:
			r.skip--
		default:
			if r.req.Limit > 0 && len(res.Items) == r.req.Limit {
				return position{view: v, after: after}, true, nil
			}
			if err := r.add(res, view.Cluster, e); err != nil {
				return position{}, false, err
			}
		}
		after = e.Key
	}
	return position{}, false, r.stopped
}

func (r *run[T]) add(res *Result[T], cluster string, e *store.Entry[T]) error {
	if err := cmp.Or(r.budget.result(), r.budget.answer(e.Size)); err != nil {
		return err
	}
	res.Items = append(res.Items, Item[T]{cluster, e})
	return nil
}

func (r *run[T]) fillSorted(l *heldList[T], at position, res *Result[T]) (position, bool, error) {
	end := len(l.sorted)
	if at.served > end {
		return position{}, false, errNotHeld // the views of a resumed list are others
	}
	if r.req.Limit > 0 {
		end = min(end, at.served+r.req.Limit)
	}
	for _, p := range l.sorted[at.served:end] {
		if err := r.budget.answer(p.entry.Size); err != nil {
			return position{}, false, err
		}
		res.Items = append(res.Items, Item[T]{l.views[p.view].Cluster, p.entry})
	}
	return position{served: end}, end < len(l.sorted), nil
}

// total counts the whole list once, if that is possible without reading objects.
func (r *run[T]) total(l *heldList[T]) {
	if l.counted || !r.req.Selection.Empty() {
		return
	}
	n := 0
	for i := range l.views {
		n += r.size(&l.views[i])
	}
	l.total, l.counted = &n, true
}

// count returns the number of matching objects.
func (r *run[T]) count(l *heldList[T]) (*Result[T], error) {
	res := &Result[T]{Views: l.views}
	for i := range l.views {
		view := &l.views[i]
		if r.req.Selection.Empty() {
			res.Count += r.size(view)
			if r.stopped != nil {
				return nil, r.stopped
			}
			continue
		}
		entries, sel := r.anyOrder(view)
		for e := range entries {
			ok, err := r.matches(sel, view, e)
			if err != nil {
				return nil, err
			}
			if ok {
				res.Count++
			}
		}
		if r.stopped != nil {
			return nil, r.stopped
		}
	}
	return res, nil
}

// sort finds all items and sorts them.
func (r *run[T]) sort(l *heldList[T]) error {
	var values []orderValue // of all items, one item after the other
	l.sorted = []place[T]{}
	for i := range l.views {
		entries, sel := r.anyOrder(&l.views[i])
		for e := range entries {
			ok, err := r.matches(sel, &l.views[i], e)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			if err := r.budget.result(); err != nil {
				return err
			}
			from := len(values)
			if values, err = r.rank(values, sel, &l.views[i], e); err != nil {
				return err
			}
			l.sorted = append(l.sorted, place[T]{view: i, rank: from, entry: e})
		}
		if r.stopped != nil {
			return r.stopped
		}
	}
	n := len(r.req.Order.terms)
	var paced error
	compared := 0
	slices.SortFunc(l.sorted, func(a, b place[T]) int {
		if compared++; compared%pacedCompare == 0 && paced == nil {
			paced = cmp.Or(r.budget.pace(), context.Cause(r.ctx))
		}
		if paced != nil {
			return 0 // the request has failed, so the order does not matter
		}
		return cmp.Or(
			r.req.Order.compare(values[a.rank:a.rank+n], values[b.rank:b.rank+n]),
			cmp.Compare(a.view, b.view),
			strings.Compare(string(a.entry.Key), string(b.entry.Key)))
	})
	if paced != nil {
		return paced
	}
	total := len(l.sorted)
	l.total, l.counted = &total, true
	return nil
}

func (r *run[T]) rank(values []orderValue, sel *Selection, view *View[T], e *store.Entry[T]) ([]orderValue, error) {
	if !sel.NeedsObject() {
		r.read(view, e)
	}
	if err := r.scratch.doc.Err(); err != nil {
		return nil, r.failed(view.Cluster, e, err)
	}
	from := len(values)
	values = r.req.Order.appendValues(values, &r.scratch.doc)
	return values, r.budget.rank(values[from:])
}

// matches reports whether a selection matches an object. It reads the object only if the key is not enough.
func (r *run[T]) matches(sel *Selection, view *View[T], e *store.Entry[T]) (bool, error) {
	if err := r.budget.scan(); err != nil {
		return false, err
	}
	if !sel.Fields.matchKey(e.Key) {
		return false, nil
	}
	if !sel.NeedsObject() {
		return true, nil
	}
	r.read(view, e)
	ok, err := sel.matchObject(r.ctx, view.Cluster, &r.scratch.doc)
	if err != nil {
		return false, r.failed(view.Cluster, e, err)
	}
	return ok, nil
}

func (r *run[T]) read(view *View[T], e *store.Entry[T]) {
	bytes := r.engine.bytes
	if view.Bytes != nil {
		bytes = view.Bytes
	}
	r.scratch.buf = bytes(e, r.scratch.buf[:0])
	r.scratch.doc.Reset(r.scratch.buf)
}

func (r *run[T]) failed(cluster string, e *store.Entry[T], err error) error {
	return fmt.Errorf("read %s %s of cluster %s: %w", r.req.Resource, e.Key, cluster, err)
}

// anyOrder returns the objects of a view that may match, in the fastest order, and the selection that is still to be
// evaluated on each.
func (r *run[T]) anyOrder(v *View[T]) (iter.Seq[*store.Entry[T]], *Selection) {
	s := r.scope()
	if n, ok := r.narrow(v, s, 0); ok {
		return slices.Values(n.entries), &n.rest
	}
	if v.restricted() {
		return r.walkVisible(v, s, ""), &r.req.Selection
	}
	if s.all() {
		return v.Snapshot.Entries(), &r.req.Selection
	}
	if x, err := v.Snapshot.Index(namespaceIndex); s.name == "" && err == nil && !s.none {
		return x.Entries(s.namespace), &r.req.Selection
	}
	return r.walk(v, s, ""), &r.req.Selection
}
