package server

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/query"
	"github.com/mirador-k8s/mirador/object"
)

// list answers with the objects of a resource in one cluster or in several.
func (s *Server) list(w http.ResponseWriter, r *http.Request, t *target, places []place, moment fleetMoment, p *params) error {
	f, err := formOf(r.Header.Get("Accept"))
	if err != nil {
		return err
	}
	client := s.clientOf(r)
	work, err := s.work.begin(r.Context(), client)
	if err != nil {
		return err
	}
	defer work.end()
	memory := s.memory.open(client)
	defer memory.close()
	req, err := s.request(r, t, places, p)
	if err != nil {
		return err
	}
	if p.ResourceVersion != "" && p.ResourceVersion != "0" {
		work.leave() // the mirror may have to wait for its cluster
		if err := s.fresh(r, t, places, p); err != nil {
			return err
		}
		if err := work.resume(); err != nil {
			return err
		}
	}
	req.Pace = func(held int64) error {
		if held > memory.held {
			if err := memory.set(held + scanStep); err != nil {
				return err
			}
		}
		return work.pace()
	}
	if t.fleet && req.Continue != "" {
		if req.Continue, moment.version, err = splitToken(req.Continue); err != nil {
			return err
		}
	}
	var shape *fleetShape
	if t.fleet && (!req.Selection.OnlyLabels() || !req.Order.Empty()) {
		shape = s.fleetShape(places[0].res)
		places = shape.narrow(places, p.FieldSelector)
	}
	views := make([]query.View[*fleet.Object], len(places))
	for i, p := range places {
		views[i] = query.View[*fleet.Object]{Cluster: p.cluster, Snapshot: p.res.Snapshot(), Bytes: shape.bytes(p.cluster)}
	}
	if v := object.Version(p.ResourceVersion); !t.fleet && p.ResourceVersionMatch == metav1.ResourceVersionMatchExact && p.Continue == "" && views[0].Snapshot.Version() != v {
		return apierrors.NewResourceExpired(fmt.Sprintf("The provided resource version is not available: %s, and the mirror is at %s", v, views[0].Snapshot.Version()))
	}
	res, err := s.engine.List(r.Context(), *req, views)
	if err != nil {
		return err
	}
	l := s.listing(f, t, places, moment, p, res)
	if p.order == "" {
		l.sortByPrecedence()
	}
	if t.fleet {
		version := strconv.FormatUint(moment.version, 10)
		l.meta.ResourceVersion = version
		if l.meta.Continue != "" {
			l.meta.Continue += "." + version
		}
	} else {
		l.meta.ResourceVersion = string(res.Views[0].Snapshot.Version())
	}
	l.work, l.memory = work, memory
	return l.answer(w, r)
}

const (
	// requestMemory is how many bytes all requests may hold together while they are answered: what scans have found, what
	// lists are sorted by, and what waits for clients to read it.
	requestMemory = 256 << 20
	// scanStep is in what steps a scan takes memory.
	scanStep = 256 << 10
)

// request is what the engine is asked.
func (s *Server) request(r *http.Request, t *target, places []place, p *params) (*query.Request, error) {
	sel, err := s.selection(p, places)
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

// fresh waits until the mirror is as new as was asked for.
func (s *Server) fresh(r *http.Request, t *target, places []place, p *params) error {
	v := object.Version(p.ResourceVersion)
	if v == "" || v == "0" || p.Continue != "" {
		return nil
	}
	if t.fleet {
		return s.all.fresh(v, p.ResourceVersionMatch == metav1.ResourceVersionMatchExact)
	}
	return waitVersion(r.Context(), places[0].res, v)
}

// splitToken takes the fleet's version, that of the first page, off a token.
func splitToken(token string) (inner string, version uint64, err error) {
	inner, text, _ := strings.Cut(token, ".")
	if version, err = strconv.ParseUint(text, 10, 64); err != nil {
		return "", 0, apierrors.NewBadRequest("continue key is not valid: it is none of a list of all clusters")
	}
	return inner, version, nil
}

// listing makes what is written from what was found.
func (s *Server) listing(f form, t *target, places []place, moment fleetMoment, p *params, found *query.Result[*fleet.Object]) *listing {
	l := &listing{items: make([]item, len(found.Items)), meta: metav1.ListMeta{Continue: found.Continue}}
	if found.Continue != "" && found.Remaining != query.Unknown {
		n := int64(found.Remaining)
		l.meta.RemainingItemCount = &n
	}
	l.gvk = places[0].res.GVK()
	l.custom = s.definition(places[0].cluster, places[0].res) != nil
	if !t.fleet {
		l.render = s.renderer(f, t, places[0].res, p)
		for i, it := range found.Items {
			l.items[i] = item{it.Cluster, it.Entry, string(it.Entry.Version)}
		}
		return l
	}
	l.render = s.fleetRenderer(f, places, p)
	for i, it := range found.Items {
		l.items[i] = item{it.Cluster, it.Entry, moment.of(it.Cluster, it.Entry.Key)}
	}
	return l
}
