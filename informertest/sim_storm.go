package informertest

import (
	"fmt"
	"time"
)

// What the subjects' backoff is made with, and how many bad answers one attempt may
// meet without a pause: a state asked for by a watch, asked for anew without a
// version, listed, and listed anew.
const (
	backoffFirst = 800 * time.Millisecond
	backoffMost  = 30 * time.Second
	perAttempt   = 4
)

// stormWatch judges P11 on the requests as the server sees them.
type stormWatch struct {
	row      int       // bad answers since a stream last lived
	since    time.Time // when the first of them was met
	notUntil time.Time // what the last Retry-After asks for
}

// bad is told of a bad answer; it is the end of a stream that had lived, where lived
// says so.
func (w *stormWatch) bad(now time.Time, retryAfter time.Duration, lived bool) {
	if lived {
		w.row = 0
	}
	if w.row == 0 {
		w.since = now
	}
	w.row++
	w.notUntil = time.Time{}
	if retryAfter > 0 {
		w.notUntil = now.Add(retryAfter)
	}
}

// lived is told that a stream has lasted: what failed before is over.
func (w *stormWatch) lived() { w.row = 0 }

// leastMissed is how many bookmarks of an API server a watch must have missed before a
// subject may take it for dead.
const leastMissed = 3

// gaveUp judges P11 on a watch that the subject closes while it waits for the server to
// say something.
func (j *judge) gaveUp(ex *exchange) {
	silent := time.Since(ex.spoke)
	switch {
	case ex.closed || j.cancelled || !j.steps() || ex.watch == nil || ex.initial && !ex.stated:
	case ex.held || !ex.heldUntil.IsZero() || ex.lossy || ex.unmarked || ex.bad != "": // something was wrong with it
	case len(ex.inbox) > 0 || len(ex.frames) > 0: // the server said something, and the simulator kept it back
	case silent < leastMissed*apiServerPeriod:
		j.s.fail("P11", "request %d, a watch that had said something %s before, was given up without a cause", ex.id, silent)
	}
}

// idle lets time pass with nothing to tell but bookmarks: as many watches are opened as
// the server has ended.
func (s *simulation) idle(d time.Duration) {
	requests, ends := s.requests, s.judge.watchEnds
	for until := time.Now().Add(d); time.Now().Before(until); {
		for s.step() {
		}
		s.pass(max(s.nextTime(), time.Millisecond))
	}
	for s.step() {
	}
	if made, ended := s.requests-requests, s.judge.watchEnds-ends; made > ended && s.judge.steps() {
		s.fail("P11", "%d requests in an idle time of %s, in which the server ended %d watches", made, d, ended)
	}
}

// request is told of a request. A list's further pages are no attempts.
func (w *stormWatch) request(now time.Time, more bool) (out []failure) {
	if now.Before(w.notUntil) {
		out = append(out,
			failure{"P11", fmt.Sprintf("a request %s before the time that Retry-After asks for", w.notUntil.Sub(now))})
		w.notUntil = time.Time{}
	}
	if more || w.row <= perAttempt {
		return out
	}
	allowed := perAttempt
	for d, at := backoffFirst, time.Duration(0); at+d <= now.Sub(w.since); {
		at += d
		allowed += perAttempt
		if d *= 2; d > backoffMost {
			d = backoffMost
		}
	}
	if w.row > allowed {
		out = append(out,
			failure{"P11", fmt.Sprintf("%d bad answers in a row in %s, and backoff allows %d", w.row,
				now.Sub(w.since), allowed)})
		w.row = 0
	}
	return out
}
