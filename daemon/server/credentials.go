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

// credentialsKey identifies the credentials of a request: the hash of its tokens and of its client certificate.
type credentialsKey [sha256.Size]byte

var credentialHeaders = []string{"Authorization", "Sec-Websocket-Protocol", "Cookie"}

// credentialsOf returns the key of a request's credentials. ok is false if it has neither a token nor a certificate. A
// cookie may be one of other servers of the host, and is cheap to check.
func credentialsOf(r *http.Request) (key credentialsKey, ok bool) {
	h := sha256.New()
	for _, name := range credentialHeaders {
		for _, value := range r.Header.Values(name) {
			h.Write([]byte(value))
			h.Write([]byte{0})
			ok = ok || name != "Cookie"
		}
		h.Write([]byte{1})
	}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		h.Write(r.TLS.PeerCertificates[0].Raw)
		ok = true
	}
	h.Sum(key[:0])
	return key, ok
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
	if !strings.Contains(r.URL.RawQuery, "watch") {
		return nil
	}
	key, _ := credentialsOf(r)
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
	// credentialsAtOnce is how many are checked at a time.
	credentialsAtOnce = 16
	// uncheckedFor is how long a watch stays open whose credentials cannot be checked.
	uncheckedFor = 5 * time.Minute
)

// errCredentials ends a watch. The client lists again, and learns that it has to authenticate.
var errCredentials = &watchEnd{"the credentials of the request are no longer valid; list again", true}

// followCredentials ends watches whose credentials are no longer valid, until ctx ends.
func (s *Server) followCredentials(ctx context.Context) {
	tick := time.NewTicker(credentialsEvery)
	defer tick.Stop()
	failing := map[watchCredentials]time.Time{} // since when they cannot be checked
	for {
		select {
		case now := <-tick.C:
			s.checkCredentials(failing, now)
		case <-ctx.Done():
			return
		}
	}
}

// checkCredentials checks the credentials of all open watches, those of several watches once.
func (s *Server) checkCredentials(failing map[watchCredentials]time.Time, now time.Time) {
	open := s.revocations.byCredentials()
	var mu sync.Mutex // for failing
	var checking sync.WaitGroup
	turns := make(chan struct{}, credentialsAtOnce)
	for key, watches := range open {
		turns <- struct{}{}
		checking.Go(func() {
			defer func() { <-turns }()
			result := s.guard.checkAgain(watches[0].credentials)
			mu.Lock()
			defer mu.Unlock()
			if result != unchecked {
				delete(failing, key)
			} else if since, ok := failing[key]; !ok {
				failing[key] = now
			} else if now.Sub(since) >= uncheckedFor {
				result = invalid
			}
			if result == invalid {
				for _, w := range watches {
					w.revoke(errCredentials)
				}
			}
		})
	}
	checking.Wait()
	for key := range failing {
		if open[key] == nil {
			delete(failing, key)
		}
	}
}
