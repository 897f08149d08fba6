package server

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mirador-k8s/mirador/daemon/access"
	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/query"
)

// list answers with the objects of a resource.
func (s *Server) list(w http.ResponseWriter, req *request, v *view) error {
	client := clientOf(req.http)
	work, err := s.work.begin(req.context(), client)
	if err != nil {
		return err
	}
	defer work.end()
	memory := s.memory.open(client)
	defer memory.close()
	ask, err := s.engineRequest(req, v)
	if err != nil {
		return err
	}
	if !req.fromNow() && req.Continue == "" {
		work.leave() // the mirror may have to wait for a change from its cluster
		if err := s.waitFresh(req, v); err != nil {
			return err
		}
		if err := work.resume(); err != nil {
			return err
		}
	}
	ask.Pace = func(held int64) error {
		if held > memory.held {
			if err := memory.set(held + scanStep); err != nil {
				return err
			}
		}
		return work.pace()
	}
	first, second := cutRestartToken(ask.Continue)
	again := openRestartToken(s.restartSeal(), first, second)
	ask.Continue = first
	if req.isPast() && ask.Continue != "" {
		if ask.Continue, _, err = splitPastToken(ask.Continue); err != nil {
			return err
		}
	} else if req.fleet && ask.Continue != "" {
		if ask.Continue, v.moment.version, err = splitToken(ask.Continue); err != nil {
			return err
		}
	}
	shape := v.shape
	if ask.Selection.OnlyLabels() && ask.Order.Empty() {
		shape = nil // labels are the same at /fleet
	}
	v.places = shape.narrow(v.places, req.FieldSelector)
	var views []query.View[*fleet.Object]
	var past *pastList
	if req.isPast() && ask.Continue == "" {
		past = newPastList(s.past.open(client), work)
		defer past.release()
		work.leave()
		if err := awaitPast(req, v); err != nil {
			return err
		}
		if err := work.resume(); err != nil {
			return err
		}
		if views, err = past.views(s, w, req, v, ask, shape); err != nil {
			return err
		}
	}
	if err := s.stillAllowed(req, v); err != nil {
		return err
	}
	if past == nil {
		views = currentViews(v, shape)
	}
	if req.isPast() {
		w.Header().Set(momentHeader, momentText(req.moment))
	} else if err := checkExact(req, views[0].Snapshot.Version()); err != nil {
		return err
	}
	if past != nil {
		past.keep()
		ask.OnDrop = past.release
	}
	found, err := s.engine.List(req.context(), *ask, views)
	if again != nil && errors.Is(err, query.ErrExpired) && again.next.Begun.Before(s.started) {
		past = newPastList(s.past.open(client), work)
		defer past.release()
		if views, err = past.again(s, req, v, ask, shape, again); err != nil {
			return err
		}
		past.keep()
		ask.OnDrop = past.release
		found, err = s.engine.List(req.context(), *ask, views)
	}
	if past != nil && (err != nil || found.Continue == "") {
		past.release() // the engine does not hold the list
	}
	if err != nil {
		return err
	}
	if ask.Continue == "" && again == nil {
		again = s.restartToken(req, v, past, found.Views)
	}
	l := s.listing(req, v, found, again)
	l.work, l.memory = work, memory
	return l.answer(w, req.http)
}

// currentViews returns the views of a list of the present. A later page of a list at a moment is also given them: they
// say what is visible.
func currentViews(v *view, shape *fleetShape) []query.View[*fleet.Object] {
	views := make([]query.View[*fleet.Object], len(v.places))
	for i, p := range v.places {
		views[i] = query.View[*fleet.Object]{Cluster: p.cluster, Snapshot: p.res.Snapshot(), Bytes: shape.bytes(p.cluster),
			Visible: p.visible}
	}
	return views
}

// engineRequest returns the request for the query engine.
func (s *Server) engineRequest(req *request, v *view) (*query.Request, error) {
	sel, err := s.selection(req, v)
	if err != nil {
		return nil, err
	}
	order, err := query.ParseOrder(req.order)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	scope := "cluster " + req.cluster // a continue token is valid only in its scope
	if req.fleet {
		scope = "fleet " + req.clusters
	}
	if req.isPast() {
		scope += pastScope(req)
	}
	return &query.Request{User: access.UserKey(userOf(req.http)), Scope: scope,
		Group: req.group, Version: req.version, Resource: req.resource, Namespace: req.namespace,
		Selection: sel, Order: order, Limit: int(req.Limit), Continue: req.Continue}, nil
}

// listing makes the answer for the objects that were found. again, if it is not nil, continues the list in another
// process.
func (s *Server) listing(req *request, v *view, found *query.Result[*fleet.Object], again *restartToken) *listing {
	l := &listing{gvk: v.model.res.GVK(), custom: s.definition(v.model) != nil, items: make([]item, len(found.Items)),
		render: s.renderer(req, v)}
	l.meta.Continue = found.Continue
	if v.past {
		l.meta.ResourceVersion = pastVersion(found.Views)
	} else {
		l.meta.ResourceVersion = v.version(found.Views[0].Snapshot)
	}
	if found.Continue != "" && found.Remaining != query.Unknown {
		n := int64(found.Remaining)
		l.meta.RemainingItemCount = &n
	}
	switch {
	case found.Continue == "":
	case v.past:
		l.meta.Continue = pastToken(found.Continue, req.moment)
	case req.fleet:
		l.meta.Continue += "." + l.meta.ResourceVersion
	}
	if again != nil && found.Continue != "" {
		again.next = found.Next
		l.meta.Continue = again.seal(s.restartSeal(), l.meta.Continue)
	}
	for i, it := range found.Items {
		l.items[i] = item{it.Cluster, it.Entry, v.versionOf(it.Cluster, it.Entry)}
	}
	if req.order == "" {
		l.sortByPrecedence()
	}
	return l
}
