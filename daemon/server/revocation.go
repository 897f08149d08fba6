package server

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/mirador-k8s/mirador/daemon/access"
	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/query"
)

// revocations has the open watches, to end those whose users lose or gain a right.
type revocations struct {
	mu   sync.Mutex
	open map[*watchRights]struct{}
}

// watchRights is what the user of an open watch may see, as of its beginning.
type watchRights struct {
	of  *revocations
	see func(cluster string) (*query.Visible, error) // as of now
	// allowed reports whether the request is still allowed as such.
	allowed     func() bool
	credentials *savedCredentials // nil if they need not be checked again
	ended       atomic.Bool

	mu      sync.Mutex
	why     *watchEnd                 // nil until it has ended
	end     func()                    // nil until the watch can be ended
	visible map[string]*query.Visible // by cluster
}

// unknown is what is visible in a cluster whose rights are not known: nothing.
var unknown = &query.Visible{}

// add registers a watch. The caller must call close.
func (rs *revocations) add(w *watchRights) *watchRights {
	w.of = rs
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.open == nil {
		rs.open = map[*watchRights]struct{}{}
	}
	rs.open[w] = struct{}{}
	return w
}

func (w *watchRights) close() {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	delete(w.of.open, w)
}

// in returns what the watch may see of a cluster. A cluster that joined after the beginning of the watch is authorized
// when its first object arrives.
func (w *watchRights) in(cluster string) *query.Visible {
	w.mu.Lock()
	see, ok := w.visible[cluster]
	w.mu.Unlock()
	if ok {
		return see
	}
	see = w.now(cluster)
	w.mu.Lock()
	w.visible[cluster] = see
	w.mu.Unlock()
	if !sameVisible(w.now(cluster), see) { // it has changed before check could compare it
		w.revoke(errRightsChanged)
	}
	return see
}

// now returns what is visible in a cluster at present.
func (w *watchRights) now(cluster string) *query.Visible {
	see, err := w.see(cluster)
	if err != nil {
		return unknown
	}
	return see
}

// sees reports whether an object is visible.
func (w *watchRights) sees(cluster string, e *fleet.Entry) bool {
	see := w.in(cluster)
	return see == nil || see.Contains(e.Key)
}

// changed reports whether something else is visible now.
func (w *watchRights) changed() bool {
	if !w.allowed() {
		return true
	}
	w.mu.Lock()
	visible := maps.Clone(w.visible)
	w.mu.Unlock()
	for cluster, was := range visible {
		if !sameVisible(w.now(cluster), was) {
			return true
		}
	}
	return false
}

// check ends the watches whose rights have changed.
func (rs *revocations) check() {
	rs.mu.Lock()
	open := make([]*watchRights, 0, len(rs.open))
	for w := range rs.open {
		open = append(open, w)
	}
	rs.mu.Unlock()
	var checking sync.WaitGroup
	defer checking.Wait()
	turns := make(chan struct{}, checksAtOnce) // a cluster that is asked and does not answer must not delay the others
	for _, w := range open {
		turns <- struct{}{}
		checking.Go(func() {
			defer func() { <-turns }()
			if !w.ended.Load() && w.changed() {
				w.revoke(errRightsChanged)
			}
		})
	}
}

// checksAtOnce is how many watches are checked at a time.
const checksAtOnce = 256

// byCredentials returns the open watches that have credentials to check.
func (rs *revocations) byCredentials() map[watchCredentials][]*watchRights {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	out := map[watchCredentials][]*watchRights{}
	for w := range rs.open {
		if c := w.credentials; c != nil && !w.ended.Load() {
			key := watchCredentials{c.key, access.UserKey(c.user)}
			out[key] = append(out[key], w)
		}
	}
	return out
}

// reason returns why the watch has ended.
func (w *watchRights) reason() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.why == nil {
		return nil
	}
	return w.why
}

// revoke ends the watch. The first reason counts.
func (w *watchRights) revoke(why *watchEnd) {
	w.mu.Lock()
	end := w.end
	if w.why == nil {
		w.why = why
	}
	w.ended.Store(true)
	w.mu.Unlock()
	if end != nil {
		end()
	}
}

// onEnd calls end when the rights change, at once if they have changed already: also between the moment at which the
// request was authorized and its registration.
func (w *watchRights) onEnd(end func()) {
	w.mu.Lock()
	w.end = end
	ended := w.ended.Load()
	w.mu.Unlock()
	switch {
	case ended:
		end()
	case w.changed():
		w.revoke(errRightsChanged)
	}
}

// followRights ends watches when rights change, until ctx ends.
func (s *Server) followRights(ctx context.Context) {
	for {
		changed := s.opts.Authorizer.Changed()
		s.revocations.check()
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
