package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
	kwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/mirador-k8s/mirador/object"
)

// fleetObjects answers for all clusters at once.
func (s *Server) fleetObjects(w http.ResponseWriter, r *http.Request, t *target, verb string) error {
	p, err := parseParams(r)
	if err != nil {
		return err
	}
	shown := *t // as it was asked for
	if err := t.resolve(p); err != nil {
		return err
	}
	members, named, err := s.members(t, p)
	if err != nil {
		return err
	}
	for _, c := range members {
		at := *t
		at.cluster = c.Name()
		if err := s.authorize(r, &at, verb); err != nil {
			return err
		}
	}
	moment := fleetMoment{hub: s.all.get(t.gvr(), s.fleet)}
	moment.version = moment.hub.now()
	places, err := s.places(w, t, members, named || p.complete)
	switch {
	case err != nil:
		return err
	case verb == "get":
		return s.fleetGet(w, r, t, &shown, places, moment, p)
	case verb == "watch":
		return s.fleetWatch(w, r, t, places, moment, p)
	}
	return s.list(w, r, t, places, moment, p)
}

// fleetMoment is what the view of all clusters was when a request began, before it was seen which clusters are ready and before
// any snapshot: what happened up to then is in all that is read afterwards, and what comes later is told.
type fleetMoment struct {
	hub     *fleetHub
	version uint64
}

// of gives the version under which an object is shown.
func (m *fleetMoment) of(cluster string, key object.Key) string {
	return m.hub.version(cluster, key, m.version)
}

// resolve turns names of the fleet into a cluster's own. Whoever asks for one name or one namespace
// asks for one cluster.
func (t *target) resolve(p *params) error {
	if err := t.resolvePath(); err != nil {
		return err
	}
	if p.FieldSelector == nil || p.FieldSelector.Empty() {
		return nil
	}
	var own []fields.Selector
	for _, q := range p.FieldSelector.Requirements() {
		// Others are those of objects in any cluster.
		named := q.Field == byNamespace && strings.Contains(q.Value, ".") || q.Field == byName && strings.Contains(q.Value, t.nameSeparator())
		switch cluster, value, ok := t.ownValue(q.Field, q.Value); {
		case !named:
		case q.Operator == selection.NotEquals || !ok || t.cluster != "" && t.cluster != cluster:
			return apierrors.NewBadRequest(fmt.Sprintf("%s must equal one of the fleet's own names here, such as eu.web or eu:node-1", q.Field))
		default:
			t.cluster, q.Value = cluster, value
		}
		if q.Operator == selection.NotEquals {
			own = append(own, fields.OneTermNotEqualSelector(q.Field, q.Value))
		} else {
			own = append(own, fields.OneTermEqualSelector(q.Field, q.Value))
		}
	}
	p.fields = fields.AndSelectors(own...).String()
	return nil
}

func (s *Server) fleetGet(w http.ResponseWriter, r *http.Request, t, shown *target, places []place, moment fleetMoment, p *params) error {
	f, err := formOf(r.Header.Get("Accept"))
	if err != nil {
		return err
	}
	if len(places) == 0 || places[0].res.Info().Namespaced != (t.namespace != "") {
		return errNotFound(t.groupResource(), shown.name)
	}
	e, ok := places[0].res.Entry(object.NewKey(t.namespace, t.name))
	if !ok {
		return errNotFound(t.groupResource(), shown.name)
	}
	held := s.memory.open(s.clientOf(r))
	defer held.close()
	if err := held.set(int64(e.Size)); err != nil {
		return err
	}
	body, err := single(s.fleetRenderer(f, places, p), t, e, moment.of(t.cluster, e.Key))
	if err != nil {
		return err
	}
	return writeObject(w, r, body)
}

// fleetRenderer prints all clusters' objects as the first cluster would: a table has one head.
func (s *Server) fleetRenderer(f form, places []place, p *params) *renderer {
	r := &renderer{form: f, fleet: s.fleetShape(places[0].res), now: time.Now(), include: p.include}
	if f == asTable {
		r.printer, r.own = s.printer(places[0].cluster, places[0].res)
	}
	return r
}

// fleetWatch serves a watch of all clusters.
func (s *Server) fleetWatch(w http.ResponseWriter, r *http.Request, t *target, places []place, moment fleetMoment, p *params) error {
	f, err := formOf(r.Header.Get("Accept"))
	if err != nil {
		return err
	}
	admitted, err := s.admitWatch(r, p)
	if err != nil {
		return err
	}
	defer admitted.close()
	flt, err := s.newFilter(p, places)
	if err != nil {
		return err
	}
	admitted.work.leave()
	render := s.fleetRenderer(f, places, p)
	if !flt.sel.OnlyLabels() {
		flt.shape = render.fleet
	}
	st := newStream(w, render, flt, places[0].res.GVK())
	ctx, cancel := context.WithTimeout(r.Context(), p.timeout(watchAtLeast+rand.N(watchAtLeast)))
	defer cancel()
	begin, end := p.initialEvents()
	from := object.Version(p.ResourceVersion)
	if begin || p.fromNow() {
		from = object.Version(strconv.FormatUint(moment.version, 10))
	}
	hub, of := moment.hub, scopeOf{cluster: t.cluster, namespace: t.namespace}
	feed, missed, err := hub.join(of, from)
	if err != nil {
		st.serve(ctx, r, t, func(context.Context) error { return err })
		return nil
	}
	defer hub.leave(feed)
	st.feed, st.work = feed, admitted.work
	st.reached = func(object.Version) (string, bool) { return hub.reached(feed) }
	st.serve(ctx, r, t, func(ctx context.Context) error {
		if begin {
			if err := st.fleetState(ctx, t, places, &moment, end); err != nil {
				return err
			}
		}
		if err := st.tell(missed); err != nil {
			return err
		}
		admitted.settle()
		return st.follow(ctx, nil, s.stopping, p.AllowWatchBookmarks)
	})
	return nil
}

// fleetState tells everything there is in all clusters.
func (st *stream) fleetState(ctx context.Context, t *target, places []place, moment *fleetMoment, ended bool) error {
	if err := st.startWork(); err != nil {
		return ignoreEnd(ctx, err)
	}
	defer st.endWork()
	var lines []byte
	for _, p := range places {
		entries, flt := st.filter.candidates(p.res.Snapshot(), t.namespace)
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
			line, err := encodeFrame(st.render, kwatch.Added, p.cluster, e, moment.of(p.cluster, e.Key), !st.columned)
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
		line, err := st.blank(strconv.FormatUint(moment.version, 10), true)
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
