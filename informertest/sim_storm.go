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

// request is told of a request. A list's further pages are no attempts.
func (w *stormWatch) request(now time.Time, more bool) (out []failure) {
	if now.Before(w.notUntil) {
		out = append(out, failure{"P11", fmt.Sprintf("a request %s before the time that Retry-After asks for", w.notUntil.Sub(now))})
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
		out = append(out, failure{"P11", fmt.Sprintf("%d bad answers in a row in %s, and backoff allows %d", w.row, now.Sub(w.since), allowed)})
		w.row = 0
	}
	return out
}
