package query

import (
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// labelIndex is the name of the index by labels, whose values are name=value. Not every snapshot has it.
const labelIndex = "label"

// readCost is about how many objects an index finds in the time it takes to read one object of the packed layout.
const readCost = 64

// narrowed is the result of the label index for a view.
type narrowed[T any] struct {
	entries []*store.Entry[T] // all that may match, unordered
	rest    Selection         // still to be evaluated on each
}

// Candidates returns the objects of a snapshot that may match a selection, in one namespace or all, sorted by key, and
// the selection that is still to be evaluated on each. It uses indexes where that helps.
func Candidates[T any](snap *store.Snapshot[T], namespace string, sel Selection) ([]*store.Entry[T], Selection) {
	if n, ok := narrow(snap, namespace, sel, 0); ok {
		return order(n.entries, ""), n.rest
	}
	if x, err := snap.Index(namespaceIndex); err == nil && namespace != "" {
		return order(slices.AppendSeq(make([]*store.Entry[T], 0, x.Len(namespace)), x.Entries(namespace)), ""), sel
	}
	return slices.Collect(byKey(snap, namespace, "")), sel
}

// narrow finds the objects that may match by the label index, if that is less work than reading all objects of a
// namespace, or enough objects to fill a page.
func (r *run[T]) narrow(v *View[T], s scope, limit int) (narrowed[T], bool) {
	if s.none || s.name != "" {
		return narrowed[T]{}, false
	}
	n, ok := narrow(v.Snapshot, s.namespace, r.req.Selection, limit)
	if ok && v.restricted() {
		n.entries = slices.DeleteFunc(n.entries, func(e *store.Entry[T]) bool { return !v.Visible.Contains(e.Key) })
	}
	return n, ok
}

func narrow[T any](snap *store.Snapshot[T], namespace string, sel Selection, limit int) (narrowed[T], bool) {
	n := narrowed[T]{rest: sel}
	if sel.Labels == nil || sel.Labels.Empty() {
		return n, false
	}
	requirements, selectable := sel.Labels.Requirements()
	if !selectable {
		return n, true
	}
	x, err := snap.Index(labelIndex)
	if err != nil {
		return n, false
	}
	sets, others := splitRequirements(x, requirements)
	if len(sets) == 0 || !worthwhile(snap, namespace, sets[0].size, limit) {
		return n, false
	}
	n.entries = collect(x, &sets[0], namespace)
	for _, set := range sets[1:] {
		if set.size > readCost*len(n.entries) {
			others = append(others, set.requirement)
			continue
		}
		n.entries = intersect(x, &set, n.entries)
	}
	n.rest.Labels = nil
	if len(others) > 0 {
		n.rest.Labels = labels.NewSelector().Add(others...)
	}
	return n, true
}

// worthwhile reports whether collecting and sorting objects by the index is less work than reading objects.
func worthwhile[T any](snap *store.Snapshot[T], namespace string, found, limit int) bool {
	read := snap.Len()
	if x, err := snap.Index(namespaceIndex); namespace != "" && err == nil {
		read = x.Len(namespace)
	}
	if limit > 0 && found > 0 {
		// The number of objects to read until a page is full, if matching objects are spread evenly.
		read = min(read, int(min(float64(limit)*float64(snap.Len())/float64(found), math.MaxInt32)))
	}
	return found <= readCost*read
}

// labelSet is a requirement that the index can answer.
type labelSet struct {
	requirement labels.Requirement
	values      []string
	size        int
}

// splitRequirements returns the requirements that the index can answer, those with the fewest objects first, and the
// others.
func splitRequirements[T any](x store.Index[T],
	requirements labels.Requirements) (sets []labelSet, others []labels.Requirement) {
	for _, q := range requirements {
		switch q.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
		default:
			others = append(others, q)
			continue
		}
		set := labelSet{requirement: q}
		for _, v := range q.ValuesUnsorted() {
			value := q.Key() + "=" + v
			set.values = append(set.values, value)
			set.size += x.Len(value)
		}
		sets = append(sets, set)
	}
	slices.SortStableFunc(sets, func(a, b labelSet) int { return a.size - b.size })
	return sets, others
}

// collect returns the objects of a set that are in a namespace, or in any if it is "".
func collect[T any](x store.Index[T], set *labelSet, namespace string) []*store.Entry[T] {
	var found []*store.Entry[T]
	if namespace == "" {
		found = make([]*store.Entry[T], 0, set.size)
	} else {
		namespace += "/"
	}
	for _, v := range set.values {
		for e := range x.Entries(v) {
			if strings.HasPrefix(string(e.Key), namespace) {
				found = append(found, e)
			}
		}
	}
	if len(set.values) > 1 {
		return order(found, "") // removes duplicates
	}
	return found
}

// intersect returns the objects of some that are also in a set.
func intersect[T any](x store.Index[T], set *labelSet, some []*store.Entry[T]) []*store.Entry[T] {
	in := make(map[*store.Entry[T]]struct{}, set.size)
	for _, v := range set.values {
		for e := range x.Entries(v) {
			in[e] = struct{}{}
		}
	}
	return slices.DeleteFunc(some, func(e *store.Entry[T]) bool {
		_, ok := in[e]
		return !ok
	})
}

// order sorts entries by key and removes duplicates and those up to the key after.
func order[T any](entries []*store.Entry[T], after object.Key) []*store.Entry[T] {
	if after != "" {
		entries = slices.DeleteFunc(entries, func(e *store.Entry[T]) bool { return e.Key <= after })
	}
	slices.SortFunc(entries, func(a, b *store.Entry[T]) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return slices.Compact(entries)
}
