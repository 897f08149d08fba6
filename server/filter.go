package server

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/mirador-k8s/mirador/fleet"
	"github.com/mirador-k8s/mirador/query"
)

// filter tells which objects a watch is about. It belongs to one goroutine.
type filter struct {
	sel      query.Selection
	clusters []string // none means all
	doc      query.Doc
	raw      []byte
}

func newFilter(p *params) (*filter, error) {
	sel, err := p.selection()
	if err != nil {
		return nil, err
	}
	return &filter{sel: sel, clusters: p.onlyClusters()}, nil
}

// selection reads the selectors of a request.
func (p *params) selection() (query.Selection, error) {
	sel, err := query.ParseSelection(p.labels, p.fields, p.where)
	if err != nil {
		return sel, apierrors.NewBadRequest(err.Error())
	}
	return sel, nil
}

// takes reports whether an object is selected.
func (f *filter) takes(cluster string, e *fleet.Entry) (bool, error) {
	if e == nil || len(f.clusters) > 0 && !slices.Contains(f.clusters, cluster) {
		return false, nil
	}
	if f.sel.Empty() {
		return true, nil
	}
	if !f.sel.NeedsObject() {
		return f.sel.Matches(context.Background(), cluster, e.Key, nil)
	}
	f.raw = fleet.Bytes(e, f.raw[:0])
	f.doc.Reset(f.raw)
	return f.sel.Matches(context.Background(), cluster, e.Key, &f.doc)
}

// sees says what a change is to a watch: an object that begins to be selected is added, one that
// ceases to be is deleted. "" is nothing at all.
func (f *filter) sees(c *change) (kwatch.EventType, error) {
	before, err := f.takes(c.cluster, c.old)
	if err != nil {
		return "", err
	}
	after, err := f.takes(c.cluster, c.now)
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
