package server

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/mirador-k8s/mirador/daemon/query"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

const (
	// bookmarkEvery is how often a watch gets a bookmark.
	bookmarkEvery = time.Minute
	// writeTimeout is how long a client may take to read one write.
	writeTimeout = 30 * time.Second
	// watchAtLeast is how long a watch without timeoutSeconds= lasts at least; it lasts up to twice as long.
	watchAtLeast = 30 * time.Minute
)

// watch sends the changes of a resource until the client leaves or the watch times out.
func (s *Server) watch(w http.ResponseWriter, req *request, v *view) error {
	admitted, err := s.admitWatch(req)
	if err != nil {
		return err
	}
	defer admitted.close()
	flt, err := s.newFilter(req, v)
	if err != nil {
		return err
	}
	res := v.model.res
	rights := s.watchRights(req, v)
	defer rights.close()
	flt.rights = rights
	st := newStream(w, s.renderer(req, v), flt, res.GVK())
	st.work = admitted.work
	st.work.leave()
	ctx, cancel := context.WithTimeout(req.context(), req.timeout(watchAtLeast+rand.N(watchAtLeast)))
	defer cancel()
	if !req.fleet && !req.fromNow() {
		if err := waitVersion(ctx, res, object.Version(req.ResourceVersion)); err != nil {
			return err
		}
	}
	missed, err := s.joinHub(st, req, v)
	if errors.Is(err, store.ErrGone) {
		st.serve(ctx, req, func(context.Context) error { return err })
		return nil
	}
	if err != nil {
		return unavailable(err)
	}
	defer st.hub.leave(st.feed)
	st.endsWith(rights)
	// Taken before the client sees that the watch is open: it must receive every change after that.
	now := v.version(res.Snapshot())
	st.serve(ctx, req, func(ctx context.Context) error {
		switch begin, end := req.initialEvents(); {
		case begin:
			if err := st.sendInitial(ctx, req, v, end); err != nil {
				return err
			}
		case req.fromNow():
			st.beginAt(now)
		case !req.fleet:
			st.beginAt(req.ResourceVersion)
		}
		if missed != nil {
			if err := st.sendMissed(missed); err != nil {
				return err
			}
		}
		admitted.endStart()
		return st.follow(ctx, s.stopping, req.AllowWatchBookmarks)
	})
	return nil
}

// watchRights registers what the user of a watch may see. If the request as such is allowed, no cluster has a set.
func (s *Server) watchRights(req *request, v *view) *watchRights {
	w := &watchRights{visible: map[string]*query.Visible{}, credentials: credentialsOfWatch(req.http),
		allowed: func() bool { return s.stillImpersonates(req.http) }}
	namespaced := v.model.res.Info().Namespaced
	w.see = func(cluster string) (*query.Visible, error) { return s.visibleIn(req, cluster, namespaced) }
	if !req.fleet && !req.filtered {
		w.visible[req.cluster] = nil
		w.see = func(string) (*query.Visible, error) { return nil, nil }
		w.allowed = func() bool {
			return s.stillImpersonates(req.http) && s.decide(req.http, req.cluster, req.attributes()).Allowed
		}
		return s.revocations.add(w)
	}
	for _, p := range v.places {
		w.visible[p.cluster] = p.visible
	}
	for _, cluster := range v.unknownRights {
		w.visible[cluster] = unknown
	}
	return s.revocations.add(w)
}

// joinHub registers a stream with the hub of its resource, and returns the changes between its version and now, nil if
// there are none. The error is store.ErrGone if these changes are not known.
func (s *Server) joinHub(st *stream, req *request, v *view) (missed iter.Seq[*change], err error) {
	of, from := watchScope{req.cluster, req.namespace}, object.Version(req.ResourceVersion)
	begin, _ := req.initialEvents()
	begin = begin || req.fromNow()
	if !req.fleet {
		hub, feed, err := s.clusterHubs.join(v.places[0], of)
		if err != nil {
			return nil, err
		}
		st.hub, st.feed = hub, feed
		if begin {
			return nil, nil // the snapshot that is taken next contains every change up to now
		}
		if v.changed {
			hub.leave(feed)
			return nil, errRightsSince(from)
		}
		if missed, err = hub.since(from); err != nil {
			hub.leave(feed)
		}
		return missed, err
	}
	if begin {
		from = object.Version(v.version(nil))
	} else if from.Before(object.Version(strconv.FormatUint(v.moment.since, 10))) {
		return nil, errRightsSince(from)
	}
	if err := v.moment.hub.wait(req.context()); err != nil {
		return nil, err
	}
	feed, changes, err := v.moment.hub.join(of, from)
	st.hub, st.feed = v.moment.hub, feed
	if len(changes) > 0 {
		missed = slices.Values(changes)
	}
	return missed, err
}

// errRightsSince is the error for a watch that would continue a list from before the rights of its user changed.
func errRightsSince(from object.Version) error {
	return fmt.Errorf("too old resource version: %s: the rights of the user have changed: %w", clip(string(from)),
		store.ErrGone)
}

// selectorBytes is roughly how many bytes of memory one byte of a selector or expression takes once compiled.
const selectorBytes = 100

// watchAdmission is what a watch holds of its client's share.
type watchAdmission struct {
	work   *work
	memory *grant
}

// admitWatch waits for the first turn of a watch and reserves the memory of its selectors. It returns with the turn.
func (s *Server) admitWatch(req *request) (*watchAdmission, error) {
	client := clientOf(req.http)
	memory := s.memory.open(client)
	if err := memory.set(selectorBytes * int64(len(req.labels)+len(req.fields)+len(req.where))); err != nil {
		return nil, err
	}
	work, err := s.work.begin(req.context(), client)
	if err != nil {
		memory.close()
		return nil, err
	}
	return &watchAdmission{work, memory}, nil
}

// endStart ends the start of a watch. The watch no longer counts as a request in the work gate, but may still take
// turns there.
func (a *watchAdmission) endStart() {
	a.work.end()
	a.work.answering()
}

// close releases everything.
func (a *watchAdmission) close() {
	a.work.end()
	a.memory.close()
}

// takeWatch counts an open watch. The caller closes the grant when the watch ends.
func (s *Server) takeWatch(r *http.Request) (*grant, error) {
	g := s.watches.open(clientOf(r))
	if g.set(1) != nil {
		return nil, tooManyRequests(refusedWatches, "too many watches are open", 5)
	}
	return g, nil
}
