package server

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

const (
	// bookmarkEvery is how often a quiet watch is told how far it is.
	bookmarkEvery = time.Minute
	// writeTimeout is how long a client may take to read what is written to it at once.
	writeTimeout = 30 * time.Second
	// watchAtLeast is how long a watch lasts that names no time, and up to twice as long.
	watchAtLeast = 30 * time.Minute
)

// watch answers with what happens to a resource, until the client leaves or a time is over.
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
	res := v.places[0].res
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
	st.serve(ctx, req, func(ctx context.Context) error {
		switch begin, end := req.initialEvents(); {
		case begin:
			if err := st.sendInitial(ctx, req, v, end); err != nil {
				return err
			}
		case req.fromNow():
			st.beginAt(v.version(res.Snapshot()))
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

// joinHub has a stream follow the hub of its resource from now on, and returns what it has missed since its version,
// nil if that is nothing. The error is store.ErrGone where that is not known.
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
			return nil, nil // the snapshot that is read next has everything up to now
		}
		if missed, err = hub.since(from); err != nil {
			hub.leave(feed)
		}
		return missed, err
	}
	if begin {
		from = object.Version(v.version(nil))
	}
	feed, changes, err := v.moment.hub.join(of, from)
	st.hub, st.feed = v.moment.hub, feed
	if len(changes) > 0 {
		missed = slices.Values(changes)
	}
	return missed, err
}

// selectorBytes is about what a byte of a selector or an expression takes in memory once it is compiled.
const selectorBytes = 100

// watchAdmission is what a watch holds of the limits of its client.
type watchAdmission struct {
	work   *work
	memory *grant
}

// admitWatch waits for the first turn of a watch and reserves the memory of its selectors. The work has a turn.
func (s *Server) admitWatch(req *request) (*watchAdmission, error) {
	client := s.clientOf(req.http)
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

// settle ends what only the beginning of a watch needs. The watch no longer counts as a request in the work gate, and
// may still have turns there.
func (a *watchAdmission) endStart() {
	a.work.end()
	a.work.answering()
}

// close returns everything.
func (a *watchAdmission) close() {
	a.work.end()
	a.memory.close()
}

// takeWatch counts a watch that is opened. The caller closes the grant when it ends.
func (s *Server) takeWatch(r *http.Request) (*grant, error) {
	g := s.watches.open(s.clientOf(r))
	if g.set(1) != nil {
		return nil, apierrors.NewTooManyRequests("too many watches are open", 5)
	}
	return g, nil
}
