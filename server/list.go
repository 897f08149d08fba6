package server

import (
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/fleet"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/query"
)

// list answers with the objects of a resource in one cluster or in several.
func (s *Server) list(w http.ResponseWriter, r *http.Request, t *target, places []place, p *params) error {
	f, err := formOf(r.Header.Get("Accept"))
	if err != nil {
		return err
	}
	req, err := s.request(r, t, p)
	if err != nil {
		return err
	}
	if err := fresh(r, places, p); err != nil {
		return err
	}
	version := ""
	if t.fleet {
		req.Continue, version = splitToken(req.Continue)
		if version == "" {
			version = s.all.get(t.gvr(), s.fleet.Clusters()).now() // before the snapshots, see there
		}
	}
	views := make([]query.View[*fleet.Object], len(places))
	for i, p := range places {
		views[i] = query.View[*fleet.Object]{Cluster: p.cluster, Snapshot: p.res.Snapshot()}
	}
	res, err := s.engine.List(r.Context(), *req, views)
	if err != nil {
		return err
	}
	l := s.listing(f, t, places, p, res)
	if t.fleet {
		l.meta.ResourceVersion = version
		if l.meta.Continue != "" {
			l.meta.Continue += "." + version
		}
	} else {
		l.meta.ResourceVersion = string(res.Views[0].Snapshot.Version())
	}
	return l.answer(w, r)
}

// request is what the engine is asked.
func (s *Server) request(r *http.Request, t *target, p *params) (*query.Request, error) {
	sel, err := p.selection()
	if err != nil {
		return nil, err
	}
	order, err := query.ParseOrder(p.order)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	asked := "cluster " + t.cluster // a token of one is none of the other
	if t.fleet {
		asked = "fleet " + p.clusters
	}
	return &query.Request{User: s.user(r), Verb: "list", Group: t.group, Version: t.version, Resource: t.resource, Namespace: t.namespace,
		Scope: asked, Selection: sel, Order: order, Limit: int(p.Limit), Continue: p.Continue}, nil
}

// fresh waits until the mirrors are as new as was asked for. Versions are of one cluster: those of
// the fleet are its own and always there.
func fresh(r *http.Request, places []place, p *params) error {
	v := object.Version(p.ResourceVersion)
	if len(places) != 1 || v == "" || v == "0" || p.Continue != "" {
		return nil
	}
	res := places[0].res
	if err := waitVersion(r.Context(), res, v); err != nil {
		return err
	}
	if now := res.Snapshot().Version(); p.ResourceVersionMatch == metav1.ResourceVersionMatchExact && now != v {
		return apierrors.NewResourceExpired(fmt.Sprintf("The provided resource version is not available: %s, and the mirror is at %s", v, now))
	}
	return nil
}

// splitToken takes the fleet's version off a token. It only says what the first page said.
func splitToken(token string) (inner, version string) {
	inner, version, _ = strings.Cut(token, ".")
	return inner, version
}

// listing makes what is written from what was found.
func (s *Server) listing(f form, t *target, places []place, p *params, found *query.Result[*fleet.Object]) *listing {
	l := &listing{items: make([]item, len(found.Items)), meta: metav1.ListMeta{Continue: found.Continue}}
	if found.Continue != "" && found.Remaining != query.Unknown {
		n := int64(found.Remaining)
		l.meta.RemainingItemCount = &n
	}
	if len(places) > 0 {
		l.gvk = places[0].res.GVK()
		l.custom = s.definition(places[0].cluster, places[0].res) != nil
	}
	if !t.fleet {
		l.render = s.renderer(f, t, places[0].res, p)
		for i, it := range found.Items {
			l.items[i] = item{it.Cluster, it.Entry, string(it.Entry.Version)}
		}
		return l
	}
	l.render = s.fleetRenderer(f, places, p)
	hub := s.all.get(t.gvr(), s.fleet.Clusters())
	for i, it := range found.Items {
		l.items[i] = item{it.Cluster, it.Entry, hub.version(it.Cluster, it.Entry.Key)}
	}
	return l
}
