package server

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/query"
)

// filter tells which objects a watch is about. It belongs to one goroutine.
type filter struct {
	sel      query.Selection
	clusters []string // none means all
	// what the selection sees is what the view of all clusters shows; nil where that makes no difference
	shape *fleetShape
	doc   query.Doc
	own   selectable
}

func (s *Server) newFilter(req *request, v *view) (*filter, error) {
	sel, err := s.selection(req, v.places)
	if err != nil {
		return nil, err
	}
	f := &filter{sel: sel, clusters: req.onlyClusters()}
	if !sel.OnlyLabels() {
		f.shape = v.shape
	}
	return f, nil
}

// selection reads the selectors of a request for a resource.
func (s *Server) selection(req *request, places []place) (query.Selection, error) {
	sel, err := query.ParseSelection(req.labels, "", req.where)
	if err == nil {
		sel.Fields, err = query.ParseFieldsWith(req.fields, s.fieldMeaning(places))
	}
	var refused apierrors.APIStatus
	if err != nil && !errors.As(err, &refused) {
		err = apierrors.NewBadRequest(err.Error())
	}
	return sel, err
}

// candidates gives the objects of a snapshot that may be selected, by key, and a filter for them.
func (f *filter) candidates(snap *fleet.Snapshot, namespace string) ([]*fleet.Entry, *filter) {
	entries, rest := query.Candidates(snap, namespace, f.sel)
	return entries, &filter{sel: rest, clusters: f.clusters, shape: f.shape}
}

// takes reports whether an object is selected.
func (f *filter) matches(cluster string, e *fleet.Entry) (bool, error) {
	return f.matchesFunc(cluster, e, func() *selectable {
		f.own = selectable{raw: fleet.Bytes(e, f.own.raw[:0]), served: f.own.served[:0]}
		if f.shape != nil {
			f.own.served = appendForFleet(f.own.served, f.own.raw, cluster, e.Key, string(e.Version), f.shape)
		}
		return &f.own
	})
}

// decide is takes for one who can show the object, which is asked for only if it matters.
func (f *filter) matchesFunc(cluster string, e *fleet.Entry, show func() *selectable) (bool, error) {
	switch {
	case e == nil || len(f.clusters) > 0 && !slices.Contains(f.clusters, cluster):
		return false, nil
	case f.sel.Empty():
		return true, nil
	case !f.sel.NeedsObject():
		return f.sel.Matches(context.Background(), cluster, e.Key, nil)
	}
	seen := show()
	if seen.labels != nil && f.sel.OnlyLabels() {
		return f.sel.MatchesLabels(e.Key, seen.labels), nil
	}
	if f.shape != nil {
		f.doc.Reset(seen.served)
	} else {
		f.doc.Reset(seen.raw)
	}
	return f.sel.Matches(context.Background(), cluster, e.Key, &f.doc)
}

// sees says what a change is to a watch: an object that begins to be selected is added, one that
// ceases to be is deleted. "" is nothing at all.
func (f *filter) eventType(c *change) (kwatch.EventType, error) {
	before, err := f.matchesFunc(c.cluster, c.old, func() *selectable { return c.selectable(&c.oldSelectable, c.old, f.shape) })
	if err != nil {
		return "", err
	}
	after, err := f.matchesFunc(c.cluster, c.now, func() *selectable { return c.selectable(&c.nowSelectable, c.now, f.shape) })
	switch {
	case err != nil:
		return "", err
	case before && after:
		return kwatch.Modified, nil
	case before:
		return kwatch.Deleted, nil
	case after:
		return kwatch.Added, nil
	}
	return "", nil
}

// costly reports whether objects have to be read to tell what a change is to this watch, and no other watch can share
// that.
func (f *filter) readsObjects() bool { return !f.sel.Empty() && !f.sel.OnlyLabels() }
