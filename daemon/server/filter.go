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

// filter decides which objects a watch is about. It must be used by one goroutine at a time.
type filter struct {
	sel      query.Selection
	clusters []string // none means all
	// shape is set if the selection has to see objects as /fleet shows them
	shape  *fleetShape
	rights *watchRights // nil: everything is visible
	doc    query.Doc
	own    selectable
}

func (s *Server) newFilter(req *request, v *view) (*filter, error) {
	sel, err := s.selection(req, v)
	if err != nil {
		return nil, err
	}
	f := &filter{sel: sel, clusters: req.onlyClusters()}
	if !sel.OnlyLabels() {
		f.shape = v.shape
	}
	return f, nil
}

// selection parses the selectors of a request. The fields that it may select by are those of clusters in which the user
// may see something.
func (s *Server) selection(req *request, v *view) (query.Selection, error) {
	places := slices.DeleteFunc(slices.Clone(v.places), func(p place) bool { return !p.shows(req.namespace) })
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

// candidates returns the objects of a snapshot that may match, by key, and a filter for them.
func (f *filter) candidates(snap *fleet.Snapshot, namespace string) ([]*fleet.Entry, *filter) {
	entries, rest := query.Candidates(snap, namespace, f.sel)
	return entries, &filter{sel: rest, clusters: f.clusters, shape: f.shape, rights: f.rights}
}

// matches reports whether an object is selected.
func (f *filter) matches(cluster string, e *fleet.Entry) (bool, error) {
	return f.matchesFunc(cluster, e, func() *selectable {
		f.own = selectable{raw: fleet.Bytes(e, f.own.raw[:0]), served: f.own.served[:0]}
		if f.shape != nil {
			f.own.served = appendForFleet(f.own.served, f.own.raw, cluster, e.Key, string(e.Version), f.shape)
		}
		return &f.own
	})
}

// matchesFunc is like matches, for callers that can share the decoded object. It calls show only if the selection
// needs the object.
func (f *filter) matchesFunc(cluster string, e *fleet.Entry, show func() *selectable) (bool, error) {
	switch {
	case e == nil || len(f.clusters) > 0 && !slices.Contains(f.clusters, cluster):
		return false, nil
	case f.rights != nil && !f.rights.sees(cluster, e):
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

// eventType returns the type of the event that a change is for this watch: Added if the object begins to match,
// Deleted if it no longer matches, and "" if the change does not concern the watch.
func (f *filter) eventType(c *change) (kwatch.EventType, error) {
	before, err := f.matchesFunc(c.cluster, c.old,
		func() *selectable { return c.selectable(&c.oldSelectable, c.old, f.shape) })
	if err != nil {
		return "", err
	}
	after, err := f.matchesFunc(c.cluster, c.now,
		func() *selectable { return c.selectable(&c.nowSelectable, c.now, f.shape) })
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

// readsObjects reports whether the filter has to read the objects of a change, other than their labels, which all
// watches share.
func (f *filter) readsObjects() bool { return !f.sel.Empty() && !f.sel.OnlyLabels() }
