package login

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"sync"
	"time"
)

const (
	// pendingAge is how long a login may take.
	pendingAge = 10 * time.Minute
	// maxCompleted is how many logins are remembered so that they are not completed again. Each was a request to the
	// issuer.
	maxCompleted = 10_000
)

// pendingLogin is a login that has begun: the browser is at the issuer.
type pendingLogin struct{ state, nonce, verifier string }

// pendingLogins begins logins and recognizes them when the browser comes back. It keeps none of them in memory, so that
// requests which only begin logins cannot stop others: nonce and code verifier are derived from the state, which the
// issuer gives back, by a secret key.
type pendingLogins struct {
	key [sha256.Size]byte

	mu        sync.Mutex
	completed map[stateData]struct{}
	order     []completedLogin // the oldest first
}

// stateData is the beginning of a state: when the login began, and random bytes. The rest authenticates these and the
// cookie of the browser.
type stateData [8 + 24]byte

type completedLogin struct {
	state stateData
	at    time.Time
}

func newPendingLogins() *pendingLogins {
	p := &pendingLogins{completed: map[stateData]struct{}{}}
	_, _ = rand.Read(p.key[:]) // never fails
	return p
}

// begin begins a login of the browser that has a cookie.
func (p *pendingLogins) begin(browser string, now time.Time) *pendingLogin {
	var data stateData
	binary.BigEndian.PutUint64(data[:], uint64(now.UnixNano()))
	_, _ = rand.Read(data[8:]) // never fails
	return p.login(data, browser)
}

func (p *pendingLogins) login(data stateData, browser string) *pendingLogin {
	encode := base64.RawURLEncoding.EncodeToString
	return &pendingLogin{state: encode(append(data[:], p.derive("browser", data, browser)...)),
		nonce: encode(p.derive("nonce", data, "")), verifier: encode(p.derive("verifier", data, ""))}
}

// derive returns bytes that only this process can compute.
func (p *pendingLogins) derive(what string, data stateData, browser string) []byte {
	h := hmac.New(sha256.New, p.key[:])
	h.Write([]byte(what + "\x00"))
	h.Write(data[:])
	h.Write([]byte(browser))
	return h.Sum(nil)
}

// take returns the login with a state, or nil if there is none that this browser began in time, or if it was taken
// before. A login that another browser tries to complete stays.
func (p *pendingLogins) take(state, browser string, now time.Time) *pendingLogin {
	var data stateData
	given, err := base64.RawURLEncoding.DecodeString(state)
	if err != nil || copy(data[:], given) < len(data) ||
		!hmac.Equal(given[len(data):], p.derive("browser", data, browser)) {
		return nil
	}
	began := time.Unix(0, int64(binary.BigEndian.Uint64(data[:])))
	if now.Sub(began) >= pendingAge || !p.complete(data, now) {
		return nil
	}
	return p.login(data, browser)
}

// complete remembers that a login is completed, and reports whether it was not.
func (p *pendingLogins) complete(data stateData, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.order) > 0 && (len(p.order) >= maxCompleted || now.Sub(p.order[0].at) >= pendingAge) {
		delete(p.completed, p.order[0].state)
		p.order = p.order[1:]
	}
	if _, again := p.completed[data]; again {
		return false
	}
	p.completed[data] = struct{}{}
	p.order = append(p.order, completedLogin{data, now})
	return true
}
