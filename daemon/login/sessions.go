package login

import (
	"container/list"
	"context"
	"crypto/sha256"
	"sync"
	"time"
)

const (
	// maxSessions is how many sessions there may be. Beyond that, the one that was not used for the longest time ends.
	maxSessions = 10_000
	// maxUserSessions is how many sessions one user may have.
	maxUserSessions = 20
	// sessionAge is how long a session lasts at most.
	sessionAge = 24 * time.Hour
	// refreshBefore is how long before its end an ID token is replaced.
	refreshBefore = 30 * time.Second
	// refreshRetry is how long after a failure the next attempt is made.
	refreshRetry = 5 * time.Second
)

// session has the tokens of a user that has logged in.
type session struct {
	user    string // its name
	subject string // at the issuer
	began   time.Time

	mu      sync.Mutex
	idToken string
	expires time.Time     // of the ID token
	refresh string        // the refresh token, "" if there is none
	renewal chan struct{} // closed when the renewal in progress ends; nil if there is none
	failure error         // of the last refresh, nil if it succeeded
	retryAt time.Time
}

const errExpired problem = "The session has expired. Log in again."

// token returns the ID token, which is replaced when it is about to expire. If the issuer does not give another one,
// the session is useless, and its next requests are not authenticated.
func (s *session) token(ctx context.Context, l *Login) (string, error) {
	for {
		s.mu.Lock()
		token, err := s.current(time.Now())
		if err != errRenew {
			s.mu.Unlock()
			return token, err
		}
		renewal, mine := s.renewal, s.renewal == nil
		if mine {
			renewal = make(chan struct{})
			s.renewal = renewal
		}
		s.mu.Unlock()
		if mine {
			// The issuer may accept the refresh token only once, so the end of this request must not interrupt it.
			s.renew(context.WithoutCancel(ctx), l)
			close(renewal)
			continue
		}
		select {
		case <-renewal:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// errRenew is the result of current if the caller has to renew the token or to wait until it is renewed.
const errRenew problem = "The session is being renewed. Try again."

// current returns the ID token as far as it can be used now. The caller holds the lock.
func (s *session) current(now time.Time) (string, error) {
	valid := now.Before(s.expires)
	soon := !now.Before(s.expires.Add(-refreshBefore))
	switch {
	case valid && (!soon || s.refresh == "" || s.renewal != nil || now.Before(s.retryAt)):
		return s.idToken, nil
	case s.refresh != "" && !now.Before(s.retryAt):
		return "", errRenew
	case s.failure != nil:
		return "", s.failure
	}
	return "", errExpired
}

// renew asks the issuer for another ID token.
func (s *session) renew(ctx context.Context, l *Login) {
	s.mu.Lock()
	refresh := s.refresh
	s.mu.Unlock()
	got, err := l.refresh(ctx, refresh, s.subject)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renewal, s.failure = nil, err
	if got != nil && got.refresh != "" {
		s.refresh = got.refresh
	}
	switch {
	case err == nil:
		s.idToken, s.expires, s.retryAt = got.idToken, got.expires, time.Time{}
		// A token that expires at once would be replaced with every request.
		if time.Until(s.expires) < refreshBefore {
			s.retryAt = time.Now().Add(refreshRetry)
			s.failure = errExpired
		}
	case isRefused(err):
		s.refresh = ""
	default:
		s.retryAt = time.Now().Add(refreshRetry)
	}
}

// problem says why the session cannot be used, or "".
func (s *session) problem() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.current(time.Now()); err != nil && err != errRenew {
		return err.Error()
	}
	return ""
}

// sessions has the sessions by the hash of their ID.
type sessions struct {
	mu     sync.Mutex
	byID   map[[sha256.Size]byte]*list.Element
	ofUser map[string]int // how many sessions a user has
	recent list.List      // of *sessionEntry, the most recently used first
}

type sessionEntry struct {
	id      [sha256.Size]byte
	session *session
}

// add adds a session and returns its ID.
func (all *sessions) add(s *session) (id string) {
	id = randomText()
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.byID == nil {
		all.byID, all.ofUser = map[[sha256.Size]byte]*list.Element{}, map[string]int{}
	}
	for e := all.recent.Back(); e != nil && all.ofUser[s.user] >= maxUserSessions; {
		older := e
		e = e.Prev()
		if older.Value.(*sessionEntry).session.user == s.user {
			all.removeLocked(older)
		}
	}
	if all.recent.Len() >= maxSessions {
		all.removeLocked(all.recent.Back())
	}
	entry := &sessionEntry{sha256.Sum256([]byte(id)), s}
	all.byID[entry.id] = all.recent.PushFront(entry)
	all.ofUser[s.user]++
	return id
}

// get returns the session with an ID, or nil.
func (all *sessions) get(id string, now time.Time) *session {
	if id == "" {
		return nil
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	e := all.byID[sha256.Sum256([]byte(id))]
	if e == nil {
		return nil
	}
	s := e.Value.(*sessionEntry).session
	if now.Sub(s.began) >= sessionAge {
		all.removeLocked(e)
		return nil
	}
	all.recent.MoveToFront(e)
	return s
}

// remove ends a session.
func (all *sessions) remove(id string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if e := all.byID[sha256.Sum256([]byte(id))]; e != nil {
		all.removeLocked(e)
	}
}

func (all *sessions) removeLocked(e *list.Element) {
	entry := all.recent.Remove(e).(*sessionEntry)
	delete(all.byID, entry.id)
	if all.ofUser[entry.session.user]--; all.ofUser[entry.session.user] == 0 {
		delete(all.ofUser, entry.session.user)
	}
}
