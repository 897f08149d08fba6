package query

import (
	"iter"
	"slices"
	"strings"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// namespaceIndex is the name of the index by namespace. Not every snapshot has it.
const namespaceIndex = "namespace"

// scope limits the keys of the objects that a request may match.
type scope struct {
	namespace string // "" for any
	name      string // "" for any; only together with a namespace
	none      bool   // no key is possible, such as with two different namespaces
}

func (s scope) all() bool { return s.namespace == "" && !s.none }

// scope returns the scope of the request, narrowed by exact field selectors.
func (r *run[T]) scope() scope {
	s := scope{namespace: r.req.Namespace}
	if ns, ok := r.req.Selection.namespace(); ok && ns != "" {
		s.none = s.namespace != "" && s.namespace != ns
		s.namespace = ns
	}
	// Without a namespace, many objects may have the same name.
	if name, ok := r.req.Selection.name(); ok && s.namespace != "" {
		s.name, s.none = name, s.none || name == ""
	}
	return s
}

// size returns the number of visible objects in the namespace of a request.
func (r *run[T]) size(v *View[T]) int {
	if v.restricted() {
		return r.visibleSize(v)
	}
	if r.req.Namespace == "" {
		return v.Snapshot.Len()
	}
	if x, err := v.Snapshot.Index(namespaceIndex); err == nil {
		return x.Len(r.req.Namespace)
	}
	n := 0
	for range byKey(v.Snapshot, r.req.Namespace, "") {
		n++
	}
	return n
}

// A namespace with at most 1/indexShare of the objects of a snapshot is sorted by itself. For a larger one, the order
// of the whole snapshot is used, which is made once and kept with the snapshot.
const indexShare = 8

// inOrder returns the objects of a view that may match and come after a key, sorted by key, and the selection that is
// still to be evaluated on each.
func (r *run[T]) inOrder(v *View[T], after object.Key) (iter.Seq[*store.Entry[T]], *Selection) {
	s := r.scope()
	if n, ok := r.narrow(v, s, r.req.Limit); ok {
		return slices.Values(order(n.entries, after)), &n.rest
	}
	if v.restricted() {
		return r.walkVisible(v, s, after), &r.req.Selection
	}
	return r.walk(v, s, after), &r.req.Selection
}

// walk returns the objects of a scope that come after a key, sorted by key, whether or not they are visible.
func (r *run[T]) walk(v *View[T], s scope, after object.Key) iter.Seq[*store.Entry[T]] {
	switch {
	case s.none:
		return func(func(*store.Entry[T]) bool) {}
	case s.name != "":
		return oneKey(v.Snapshot, object.NewKey(s.namespace, s.name), after)
	case s.namespace != "":
		x, err := v.Snapshot.Index(namespaceIndex)
		if err == nil && (x.Len(s.namespace) <= r.req.Limit || x.Len(s.namespace) <= v.Snapshot.Len()/indexShare) {
			return byIndex(x, s.namespace, after)
		}
	}
	return byKey(v.Snapshot, s.namespace, after)
}

func oneKey[T any](snap *store.Snapshot[T], key, after object.Key) iter.Seq[*store.Entry[T]] {
	return func(yield func(*store.Entry[T]) bool) {
		if e, ok := snap.Entry(key); ok && key > after {
			yield(e)
		}
	}
}

func byIndex[T any](x store.Index[T], namespace string, after object.Key) iter.Seq[*store.Entry[T]] {
	return func(yield func(*store.Entry[T]) bool) {
		entries := slices.AppendSeq(make([]*store.Entry[T], 0, x.Len(namespace)), x.Entries(namespace))
		for _, e := range order(entries, after) {
			if !yield(e) {
				return
			}
		}
	}
}

// chunk is how many entries are taken from a snapshot at a time.
const chunk = 512

// byKey returns the objects of a namespace, or all, that come after a key, in the order of the snapshot's keys, where
// those of a namespace are adjacent.
func byKey[T any](snap *store.Snapshot[T], namespace string, after object.Key) iter.Seq[*store.Entry[T]] {
	return func(yield func(*store.Entry[T]) bool) {
		after, prefix := after, ""
		if namespace != "" {
			prefix = namespace + "/"
			after = max(after, object.Key(prefix))
		}
		for {
			page, more := snap.Page(after, chunk)
			for _, e := range page {
				if !strings.HasPrefix(string(e.Key), prefix) || !yield(e) {
					return
				}
			}
			if !more {
				return
			}
			after = page[len(page)-1].Key
		}
	}
}
