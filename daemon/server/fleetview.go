package server

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"

	kwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/mirador-k8s/mirador/object"
)

// fleetWatch serves a watch of all clusters.
func (s *Server) fleetWatch(w http.ResponseWriter, req *request, v *view) error {
	admitted, err := s.admitWatch(req)
	if err != nil {
		return err
	}
	defer admitted.close()
	flt, err := s.newFilter(req, v)
	if err != nil {
		return err
	}
	admitted.work.leave()
	render := s.renderer(req, v)
	st := newStream(w, render, flt, v.places[0].res.GVK())
	ctx, cancel := context.WithTimeout(req.context(), req.timeout(watchAtLeast+rand.N(watchAtLeast)))
	defer cancel()
	begin, end := req.initialEvents()
	from := object.Version(req.ResourceVersion)
	if begin || req.fromNow() {
		from = object.Version(strconv.FormatUint(v.moment.version, 10))
	}
	hub, of := v.moment.hub, scopeOf{cluster: req.cluster, namespace: req.namespace}
	feed, missed, err := hub.join(of, from)
	if err != nil {
		st.serve(ctx, req, func(context.Context) error { return err })
		return nil
	}
	defer hub.leave(feed)
	st.feed, st.work = feed, admitted.work
	st.reached = func(object.Version) (string, bool) { return hub.reached(feed) }
	st.serve(ctx, req, func(ctx context.Context) error {
		if begin {
			if err := st.fleetState(ctx, req, v, end); err != nil {
				return err
			}
		}
		if err := st.tell(missed); err != nil {
			return err
		}
		admitted.settle()
		return st.follow(ctx, nil, s.stopping, req.AllowWatchBookmarks)
	})
	return nil
}

// fleetState tells everything there is in all clusters.
func (st *stream) fleetState(ctx context.Context, req *request, v *view, ended bool) error {
	if err := st.startWork(); err != nil {
		return ignoreEnd(ctx, err)
	}
	defer st.endWork()
	var lines []byte
	for _, p := range v.places {
		entries, flt := st.filter.candidates(p.res.Snapshot(), req.namespace)
		for _, e := range entries {
			if err := st.work.pace(); err != nil {
				return ignoreEnd(ctx, err)
			}
			ok, err := flt.takes(p.cluster, e)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			line, err := encodeFrame(st.render, kwatch.Added, p.cluster, e, v.versionOf(p.cluster, e), !st.columned)
			if err != nil {
				return err
			}
			st.columned = true
			if err := st.gather(&lines, line); err != nil {
				return err
			}
		}
	}
	if ended {
		line, err := st.blank(strconv.FormatUint(v.moment.version, 10), true)
		if err != nil {
			return err
		}
		if err := st.gather(&lines, line); err != nil {
			return err
		}
	}
	st.endWork()
	return st.write(lines)
}
