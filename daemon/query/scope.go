package query

import (
	"iter"
	"slices"
	"strings"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// namespaceIndex is the index by namespace, where a snapshot has one.
const namespaceIndex = "namespace"

// scope is what the keys of a request's objects must be.
type scope struct {
	namespace string // "" for any
	name      string // "" for any; only together with a namespace
	none      bool   // the request asks for two namespaces at once
}

func (s scope) all() bool { return s.namespace == "" && !s.none }

// scope narrows the request by what its selection requires exactly.
func (r *run[T]) scope() scope {
	s := scope{namespace: r.req.Namespace}
	if ns, ok := r.req.Selection.Namespace(); ok && ns != "" {
		s.none = s.namespace != "" && s.namespace != ns
		s.namespace = ns
	}
	// A name without a namespace may be that of many objects.
	if name, ok := r.req.Selection.Name(); ok && s.namespace != "" {
		s.name, s.none = name, s.none || name == ""
	}
	return s
}

// size is the number of objects in the scope of a request without a selection.
func (r *run[T]) size(v *View[T]) int {
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

// indexShare is the part of a snapshot up to which a namespace is put in order by itself. Above it, the order
// of the whole snapshot is used, which is made once and then kept with it.
const indexShare = 8

// inOrder gives what may match in a view by key, beginning behind a key, and what is to be asked of each.
func (r *run[T]) inOrder(v *View[T], after object.Key) (iter.Seq[*store.Entry[T]], *Selection) {
	s := r.scope()
	if n, ok := r.narrow(v, s, r.req.Limit); ok {
		return slices.Values(order(n.entries, after)), &n.rest
	}
	return r.walk(v, s, after), &r.req.Selection
}

// walk gives what is in a scope by key, beginning behind a key.
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

// byKey walks along the order of the snapshot's keys. Those of a namespace stand together.
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
