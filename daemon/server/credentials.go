package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
)

// credentialsKey identifies credentials by a hash.
type credentialsKey [sha256.Size]byte

var credentialHeaders = []string{"Authorization", "Sec-Websocket-Protocol", "Cookie"}

// credentialsOf returns the key of a request's tokens and of its client certificate. ok is false if it has neither. A
// cookie may be one of other servers of the host, and is cheap to check, so it does not count.
func credentialsOf(r *http.Request) (key credentialsKey, ok bool) {
	h := sha256.New()
	for _, value := range r.Header.Values("Authorization") {
		h.Write([]byte(value))
		h.Write([]byte{0})
		ok = true
	}
	h.Write([]byte{1})
	if token, has := subprotocolToken(r); has {
		h.Write([]byte(token))
		ok = true
	}
	h.Write([]byte{1})
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		h.Write(r.TLS.PeerCertificates[0].Raw)
		ok = true
	}
	h.Sum(key[:0])
	return key, ok
}

// allCredentialsOf returns the key of everything in a request that can decide who its user is.
func allCredentialsOf(r *http.Request) (key credentialsKey) {
	h := sha256.New()
	for _, name := range credentialHeaders {
		for _, value := range r.Header.Values(name) {
			h.Write([]byte(value))
			h.Write([]byte{0})
		}
		h.Write([]byte{1})
	}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		h.Write(r.TLS.PeerCertificates[0].Raw)
	}
	h.Sum(key[:0])
	return key
}

// withoutCredentials removes the credentials of a request from a text.
func withoutCredentials(text string, r *http.Request) string {
	for _, name := range credentialHeaders {
		for _, value := range r.Header.Values(name) {
			for _, secret := range strings.FieldsFunc(value, func(c rune) bool { return strings.ContainsRune(" ,.;=", c) }) {
				if len(secret) >= minSecret {
					text = strings.ReplaceAll(text, secret, "redacted")
				}
			}
		}
	}
	return text
}

// minSecret is the length from which on a part of a credential is removed from texts. Shorter parts, such as the word
// Bearer, are no secrets.
const minSecret = 8

// isTemporary reports whether an Authenticator could not check credentials, so that nothing is known about them.
func isTemporary(err error) bool {
	var temporary interface{ Temporary() bool }
	return errors.As(err, &temporary) && temporary.Temporary()
}

// watchCredentials identifies the credentials of watches. With those of a front proxy, there are several users.
type watchCredentials struct {
	credentialsKey
	user string // its UserKey
}

// savedCredentials are the credentials of an open watch. They are checked again from time to time, and the watch ends
// when they are no longer valid.
type savedCredentials struct {
	key     credentialsKey
	request *http.Request // has what an Authenticator reads, and nothing else
	user    user.Info
}

// saveCredentials returns the credentials of a request if it may be a watch. Authentication removes them from the
// request, so it must be called before.
func saveCredentials(r *http.Request) *savedCredentials {
	if r.URL.RawQuery == "" {
		return nil
	}
	key := allCredentialsOf(r)
	saved := &http.Request{Method: r.Method, URL: r.URL, Host: r.Host, RemoteAddr: r.RemoteAddr, TLS: r.TLS,
		Header: r.Header.Clone()}
	return &savedCredentials{key: key, request: saved.WithContext(context.Background())}
}

// credentialsOfWatch returns what was saved of the credentials of a watch.
func credentialsOfWatch(r *http.Request) *savedCredentials {
	if rec := recordOf(r); rec != nil {
		return rec.credentials
	}
	return nil
}

// validity is the result of checking credentials again.
type validity int

const (
	valid validity = iota
	invalid
	unchecked // nothing is known
)

// checkAgain authenticates saved credentials again. They are valid if they are still those of the same user in the same
// groups.
func (g *guard) checkAgain(c *savedCredentials) validity {
	if c.user == localUser {
		return valid
	}
	r := c.request.Clone(c.request.Context()) // an Authenticator removes credentials
	if g.hasToken(r) {
		if c.user == tokenUser {
			return valid
		}
		return invalid
	}
	if g.access.Authenticator == nil {
		return invalid
	}
	u, ok, err := g.access.Authenticator.Authenticate(r)
	switch {
	case isTemporary(err):
		return unchecked
	case err != nil || !ok || u == nil || !sameUser(u, c.user):
		return invalid
	}
	return valid
}

func sameUser(a, b user.Info) bool {
	return a.GetName() == b.GetName() && a.GetUID() == b.GetUID() &&
		slices.Equal(slices.Sorted(slices.Values(a.GetGroups())), slices.Sorted(slices.Values(b.GetGroups())))
}

const (
	// credentialsEvery is how often the credentials of open watches are checked.
	credentialsEvery = 10 * time.Second
	// credentialsAtOnce is how many are checked at a time. Those of one user are checked one after the other.
	credentialsAtOnce = 16
	// uncheckedFor is how long a watch stays open whose credentials cannot be checked.
	uncheckedFor = 5 * time.Minute
)

// errCredentials ends a watch. The client lists again, and learns that it has to authenticate.
var errCredentials = &watchEnd{"the credentials of the request are no longer valid; list again", true}

// followCredentials ends watches whose credentials are no longer valid, until ctx ends.
func (s *Server) followCredentials(ctx context.Context) {
	checks := newCredentialChecks(s.guard)
	defer checks.wait()
	tick := time.NewTicker(credentialsEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			checks.start(ctx, s.revocations.byCredentials())
		case <-ctx.Done():
			return
		}
	}
}

// credentialChecks checks the credentials of open watches. A user whose credentials take long to check delays nothing
// for other users.
type credentialChecks struct {
	guard   *guard
	turns   chan struct{}
	running sync.WaitGroup

	mu      sync.Mutex
	users   map[string]bool                // whose credentials are being checked, by UserKey
	failing map[watchCredentials]time.Time // since when credentials cannot be checked
}

func newCredentialChecks(g *guard) *credentialChecks {
	return &credentialChecks{guard: g, turns: make(chan struct{}, credentialsAtOnce), users: map[string]bool{},
		failing: map[watchCredentials]time.Time{}}
}

// wait waits until no credentials are being checked.
func (c *credentialChecks) wait() { c.running.Wait() }

// start starts to check the credentials of open watches, those of several watches once, except for users whose
// credentials are still being checked.
func (c *credentialChecks) start(ctx context.Context, open map[watchCredentials][]*watchRights) {
	byUser := map[string][]watchCredentials{}
	for key := range open {
		byUser[key.user] = append(byUser[key.user], key)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.failing {
		if open[key] == nil {
			delete(c.failing, key)
		}
	}
	for u, keys := range byUser {
		if c.users[u] {
			continue
		}
		c.users[u] = true
		c.running.Go(func() {
			for _, key := range keys {
				select {
				case c.turns <- struct{}{}:
				case <-ctx.Done():
					return
				}
				c.check(key, open[key])
				<-c.turns
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.users, u)
		})
	}
}

// check checks credentials, and ends their watches if they are not valid.
func (c *credentialChecks) check(key watchCredentials, watches []*watchRights) {
	result := c.guard.checkAgain(watches[0].credentials)
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if result != unchecked {
		delete(c.failing, key)
	} else if since, ok := c.failing[key]; !ok {
		c.failing[key] = now
	} else if now.Sub(since) >= uncheckedFor {
		result = invalid
	}
	if result == invalid {
		for _, w := range watches {
			w.revoke(errCredentials)
		}
	}
}
