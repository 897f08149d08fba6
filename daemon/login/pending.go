package login

import (
	"container/list"
	"crypto/sha256"
	"crypto/subtle"
	"sync"
	"time"
)

const (
	// maxPending is how many logins may be in progress. Beyond that, the oldest one is dropped, so that requests which
	// only begin logins cannot stop others: a user whose login was dropped begins another one.
	maxPending = 10_000
	// pendingAge is how long a login may take.
	pendingAge = 10 * time.Minute
)

// pendingLogin is a login that has begun: the browser is at the issuer.
type pendingLogin struct {
	state    string
	nonce    string
	verifier string
	browser  [sha256.Size]byte // of the cookie of the browser
	began    time.Time
}

// pendingLogins has the logins that have begun, by state.
type pendingLogins struct {
	mu      sync.Mutex
	byState map[string]*list.Element
	byAge   list.List // of *pendingLogin, the oldest first
}

// add adds a login, and drops those that are too old or too many.
func (p *pendingLogins) add(l *pendingLogin) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byState == nil {
		p.byState = map[string]*list.Element{}
	}
	for first := p.byAge.Front(); first != nil; first = p.byAge.Front() {
		if old := first.Value.(*pendingLogin); p.byAge.Len() < maxPending && l.began.Sub(old.began) < pendingAge {
			break
		}
		p.removeLocked(first)
	}
	p.byState[l.state] = p.byAge.PushBack(l)
}

// take removes and returns the login with a state, or nil if there is none that this browser began in time. A login
// that another browser tries to complete stays.
func (p *pendingLogins) take(state, browser string, now time.Time) *pendingLogin {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.byState[state]
	if e == nil {
		return nil
	}
	l, given := e.Value.(*pendingLogin), sha256.Sum256([]byte(browser))
	if subtle.ConstantTimeCompare(l.browser[:], given[:]) != 1 {
		return nil
	}
	p.removeLocked(e)
	if now.Sub(l.began) >= pendingAge {
		return nil
	}
	return l
}

func (p *pendingLogins) removeLocked(e *list.Element) {
	delete(p.byState, p.byAge.Remove(e).(*pendingLogin).state)
}
