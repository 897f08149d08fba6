package fleet

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/source"
)

// problemLog decides which failed requests of a cluster's informers are logged as warnings. All of them are logged as
// debug messages by the informers. Other problems are logged by the informers alone.
//
// A cluster that cannot be reached has one warning, and a message when it can be reached again. A resource that fails
// by itself has one for each kind of failure until it works again.
type problemLog struct {
	mu          sync.Mutex
	unreachable bool                   // the cluster, as it was logged last
	logged      map[string][]string    // by informer, the kinds of failure
	unanswered  map[string]*unanswered // by informer, since the cluster was unreachable last
}

// unanswered are requests of one informer without an answer.
type unanswered struct {
	times int
	last  informer.Problem
}

// unansweredTimes is how often a request has no answer until it is logged, if the cluster can be reached.
const unansweredTimes = 3

// requestMessages are the messages of informers about failed requests.
var requestMessages = []string{"informer: list failed", "informer: watch failed", "informer: stream failed",
	"informer: initial state failed"}

// problem logs a failed request, or remembers it until the next state.
func (l *problemLog) problem(log *slog.Logger, p informer.Problem) {
	if !slices.Contains(requestMessages, requestMessage(&p)) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !isUnanswered(&p) {
		l.logLocked(log, &p)
		return
	}
	if l.unanswered == nil {
		l.unanswered = map[string]*unanswered{}
	}
	u := l.unanswered[p.Informer]
	if u == nil {
		u = &unanswered{}
		l.unanswered[p.Informer] = u
	}
	u.times++
	u.last = p
}

// isUnanswered reports whether a request had no answer, or its answer was cut off, so that the cluster may be the
// reason.
func isUnanswered(p *informer.Problem) bool {
	switch source.ReasonOf(p.Err) {
	case source.Unavailable, source.Refused:
		return !errors.Is(p.Err, errLimit)
	case source.Garbled:
		return p.Doing == "stream"
	}
	return false
}

func requestMessage(p *informer.Problem) string { return "informer: " + p.Doing + " failed" }

// logLocked logs a failed request unless that was done since the informer worked last. The lock is held.
func (l *problemLog) logLocked(log *slog.Logger, p *informer.Problem) {
	kind := source.ReasonOf(p.Err).String()
	if slices.Contains(l.logged[p.Informer], kind) {
		return
	}
	if l.logged == nil {
		l.logged = map[string][]string{}
	}
	l.logged[p.Informer] = append(l.logged[p.Informer], kind)
	log.Warn(requestMessage(p), "informer", p.Informer, "error", p.Err)
}

// working notes that an informer does not fail.
func (l *problemLog) working(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.logged, name)
	delete(l.unanswered, name)
}

// state logs what has changed with the state of the cluster.
func (l *problemLog) state(log *slog.Logger, cluster string, h *ClusterHealth, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case h.State == Left:
	case h.State == Unreachable:
		if !l.unreachable && h.Resources > 0 { // otherwise the discovery has failed, and was logged
			log.Warn("fleet: the cluster cannot be reached", "cluster", cluster, "error", err, "cause", detail(err))
		}
		l.unreachable, l.unanswered = true, nil
	default:
		if l.unreachable {
			log.Info("fleet: the cluster can be reached again", "cluster", cluster, "state", string(h.State))
		}
		l.unreachable = false
		for _, u := range l.unanswered {
			if u.times >= unansweredTimes {
				l.logLocked(log, &u.last)
			}
		}
	}
}

// saysUnreachable reports whether the log last said that the cluster cannot be reached.
func (l *problemLog) saysUnreachable() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unreachable
}

// requestsAtDebug makes debug messages of the messages about failed requests.
type requestsAtDebug struct{ slog.Handler }

// Handle passes a record on.
func (d requestsAtDebug) Handle(ctx context.Context, r slog.Record) error {
	if slices.Contains(requestMessages, r.Message) {
		if !d.Enabled(ctx, slog.LevelDebug) {
			return nil
		}
		r.Level = slog.LevelDebug
	}
	return d.Handler.Handle(ctx, r)
}

// WithAttrs returns a handler that does the same.
func (d requestsAtDebug) WithAttrs(attrs []slog.Attr) slog.Handler {
	return requestsAtDebug{d.Handler.WithAttrs(attrs)}
}

// WithGroup returns a handler that does the same.
func (d requestsAtDebug) WithGroup(name string) slog.Handler {
	return requestsAtDebug{d.Handler.WithGroup(name)}
}
