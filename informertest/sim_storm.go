package informertest

import (
	"fmt"
	"time"
)

// The parameters of the subjects' backoff, and how many bad answers one attempt may get without a pause: an initial
// state by a watch, the same without a version, a list, and a second list.
const (
	backoffFirst = 800 * time.Millisecond
	backoffMost  = 30 * time.Second
	perAttempt   = 4
)

// stormWatch checks P11 on the requests as the server sees them.
type stormWatch struct {
	row      int       // bad answers since the last stream that lasted
	since    time.Time // when the first of them was received
	notUntil time.Time // the end of the last Retry-After
}

// bad is called for a bad answer; lived says that it ended a stream that had lasted.
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

// lived is called when a stream has lasted: earlier failures no longer count.
func (w *stormWatch) lived() { w.row = 0 }

// leastMissed is how many bookmarks of an API server a watch must have missed before a subject may consider it dead.
const leastMissed = 3

// closedEarly checks P11 on a watch that the subject closes while it waits for the server.
func (j *judge) closedEarly(ex *exchange) {
	silent := time.Since(ex.spoke)
	switch {
	case ex.closed || j.cancelled || !j.steps() || ex.watch == nil || ex.initial && !ex.stated:
	case ex.held || !ex.heldUntil.IsZero() || ex.lossy || ex.unmarked || ex.bad != "": // the watch had a fault
	case len(ex.inbox) > 0 || len(ex.frames) > 0: // the server sent something that the simulator has not delivered
	case silent < leastMissed*apiServerPeriod:
		j.s.fail("P11", "request %d, a watch that had sent something %s before, was closed without a cause", ex.id, silent)
	}
}

// idle lets time pass in which only bookmarks are sent: the subject must open as many watches as the server ends.
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
		s.fail("P11", "%d requests in %s of idle time, in which the server ended %d watches", made, d, ended)
	}
}

// request is called for each request. Further pages of a list are not attempts.
func (w *stormWatch) request(now time.Time, more bool) (out []failure) {
	if now.Before(w.notUntil) {
		out = append(out,
			failure{"P11", fmt.Sprintf("a request %s before the end of its Retry-After", w.notUntil.Sub(now))})
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
			failure{"P11", fmt.Sprintf("%d bad answers in a row in %s, but backoff allows %d", w.row,
				now.Sub(w.since), allowed)})
		w.row = 0
	}
	return out
}
