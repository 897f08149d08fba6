package server

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mirador-k8s/mirador/daemon/access"
	"github.com/mirador-k8s/mirador/daemon/query"
)

// thenRights are the rights at the moment of a request with rights=then.
type thenRights struct {
	mu  sync.Mutex
	all map[string]thenRight // by cluster
}

type thenRight struct {
	rights *access.Then
	err    error // why they are not known
}

// resolveRights sets whether the rights of then are asked for, too.
func (req *request) resolveRights(text string) error {
	switch {
	case text == "" || text == "now":
	case text != "then":
		return badRequest("rights is now or then, not %q", clip(text))
	case !req.isPast():
		return badRequest("rights=then is for a read at a moment; give at=, or leave it out")
	default:
		req.then = &thenRights{all: map[string]thenRight{}}
	}
	return nil
}

// rightsThen returns the rights in a cluster at the moment of a request. They are read once. An error of the second kind
// is one to answer with; the other says why they are not known.
func (s *Server) rightsThen(req *request, cluster string) (rights *access.Then, unknown, err error) {
	req.then.mu.Lock()
	defer req.then.mu.Unlock()
	known, ok := req.then.all[cluster]
	if !ok {
		known.rights, known.err = s.readRightsThen(req, cluster)
		req.then.all[cluster] = known
	}
	var status apierrors.APIStatus
	if errors.As(known.err, &status) || errors.Is(known.err, query.ErrTooMuch) || req.context().Err() != nil {
		return nil, nil, known.err
	}
	return known.rights, known.err, nil
}

func (s *Server) readRightsThen(req *request, cluster string) (*access.Then, error) {
	client := clientOf(req.http)
	work, err := s.work.begin(req.context(), client)
	if err != nil {
		return nil, err
	}
	defer work.end()
	work.leave() // the disk may have to be waited for
	memory := s.past.open(client)
	defer memory.close()
	turn := false
	return s.opts.Authorizer.Then(req.context(), cluster, req.moment, func(held int64) error {
		if !turn {
			if err := work.resume(); err != nil {
				return err
			}
			turn = true
		}
		if held > memory.held {
			if err := memory.set(held + scanStep); err != nil {
				return err
			}
		}
		return work.pace()
	})
}

// decideThen returns what would have been decided about a request at its moment, if it asks for that.
func (s *Server) decideThen(req *request, cluster string) (access.Decision, error) {
	if req.then == nil {
		return access.Decision{Allowed: true}, nil
	}
	rights, unknown, err := s.rightsThen(req, cluster)
	switch {
	case err != nil:
		return access.Decision{}, err
	case unknown != nil:
		return access.Decision{Reason: unknown.Error()}, nil
	case rights == nil:
		return access.Decision{Allowed: true}, nil
	}
	d, err := rights.Decide(req.context(), userOf(req.http), req.attributes())
	if !d.Allowed {
		d.Reason = fmt.Sprintf("not at %s", momentText(req.moment))
	}
	return d, err
}

// visibleThen returns what of a set was visible at the moment of a request, too, if it asks for that. If the rights of
// then are not known, that is nothing.
func (s *Server) visibleThen(req *request, cluster string, see *query.Visible, namespaced bool) (*query.Visible, error) {
	if req.then == nil || see != nil && see.Empty() {
		return see, nil
	}
	rights, unknown, err := s.rightsThen(req, cluster)
	switch {
	case err != nil:
		return nil, err
	case unknown != nil:
		return &query.Visible{}, nil
	case rights == nil:
		return see, nil
	}
	return rights.Visible(req.context(), userOf(req.http), see, req.verb, req.groupResource(), namespaced)
}

// refuseUnknownThen warns of clusters in which the user may see something now, and whose rights of then are not known. If
// the request wants a complete answer, or nothing else is visible, that is an error instead.
func (s *Server) refuseUnknownThen(w http.ResponseWriter, req *request, fail bool) error {
	if req.then == nil {
		return nil
	}
	req.then.mu.Lock()
	defer req.then.mu.Unlock()
	for _, cluster := range slices.Sorted(maps.Keys(req.then.all)) {
		err := req.then.all[cluster].err
		switch {
		case err == nil:
		case fail:
			return req.refuse(err.Error())
		default:
			warnLeftOut(w, &absent{cluster: cluster, why: err.Error()})
		}
	}
	return nil
}
