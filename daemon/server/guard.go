package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/lru"

	"github.com/mirador-k8s/mirador/daemon/ratelimit"
)

// Access controls which requests are accepted. The zero value is for a server on a loopback address: every client that
// can reach it may read.
type Access struct {
	// Token is the token of an administrator, as "Authorization: Bearer …". If there is a Token or an Authenticator,
	// every request needs valid credentials, except for /healthz, /livez and /readyz, the files of the page, and
	// /metrics if the Authorizer allows it to the anonymous user.
	Token string
	// Authenticator authenticates requests that do not have the Token; nil means that there are no other users.
	Authenticator Authenticator
	// Hosts are the accepted host names besides those of this machine. Other host names are refused, so that a web page
	// cannot reach the server through a DNS name of its own.
	Hosts []string
	// Rate is how many requests per second each client may send, and Watches how many watches may be open in total, of
	// which one client gets at most half. 0 means 20,000 and 10,000. Requests without valid credentials are limited
	// separately for each address, so that they do not use up the rate of clients.
	Rate, Watches int
}

// CheckAddress returns an error if the server would listen for other machines without TLS and users.
func (a Access) CheckAddress(address string, tls bool) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("listen on %q: it is not an address; write host:port, such as 127.0.0.1:8090", address)
	}
	if IsLoopback(host) {
		return nil
	}
	switch {
	case a.open():
		return fmt.Errorf("listen on %q, which other machines can reach: a way to authenticate users is needed; give a "+
			"token with --token-file, or one of --client-ca-file, --token-auth-file, --authentication-config, "+
			"--authentication-token-review and --requestheader-client-ca-file, or listen on 127.0.0.1", address)
	case !tls:
		return fmt.Errorf("listen on %q, which other machines can reach: a certificate is needed, or tokens could be read "+
			"on their way; give one with --tls-cert and --tls-key, or listen on 127.0.0.1", address)
	}
	return nil
}

// open reports whether requests need no credentials.
func (a Access) open() bool { return a.Token == "" && a.Authenticator == nil }

// IsLoopback reports whether a host is one that only this machine can reach.
func IsLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// bodyTimeout is how long the body of a request may take to arrive. Bodies are limited to 1 MiB.
const bodyTimeout = 30 * time.Second

// maxTarget is how long a request's path and query may be.
const maxTarget = 16 << 10

// guard checks every request before it is routed.
type guard struct {
	access Access
	// The hash of the token, so that comparing takes the same time for every token; nil if none is required.
	token           atomic.Pointer[[sha256.Size]byte]
	clients         *ratelimit.Table // requests with valid credentials, or all if none are required
	unauthenticated *ratelimit.Table // all other requests, by address
	attempts        *ratelimit.Table // credentials that were not valid before, of all addresses
	known           *lru.Cache       // the keys of credentials that were valid
	remembered      *ratelimit.Table // how often a user may add to known
	failures        *authenticationFailures
	// allowsAnonymous reports whether a request without credentials may be answered for the anonymous user.
	allowsAnonymous func(*http.Request) bool
	next            http.Handler
}

// unauthenticatedRate is how many requests a second an address may send without valid credentials: enough to load the
// page.
const unauthenticatedRate = 200

const (
	// attemptRate is how many credentials that were not valid before are checked per second.
	attemptRate = 1000
	// knownCredentials is how many valid credentials are remembered.
	knownCredentials = 10_000
)

func newGuard(a Access, allowsAnonymous func(*http.Request) bool, next http.Handler) *guard {
	if a.Rate == 0 {
		a.Rate = 20_000
	}
	g := &guard{access: a, clients: ratelimit.NewTable(a.Rate, a.Rate),
		unauthenticated: ratelimit.NewTable(unauthenticatedRate, unauthenticatedRate),
		attempts:        ratelimit.NewTable(attemptRate, attemptRate),
		known:           lru.New(knownCredentials), remembered: ratelimit.NewTable(1, 1), failures: newAuthenticationFailures(),
		allowsAnonymous: allowsAnonymous, next: next}
	if a.Token != "" {
		g.setToken(a.Token)
	}
	return g
}

func (g *guard) setToken(token string) {
	sum := sha256.Sum256([]byte(token))
	g.token.Store(&sum)
}

// SetToken replaces the token. Watches with the old one end within seconds. A server that was made without a token
// cannot be given one, and the token cannot be removed.
func (s *Server) SetToken(token string) error {
	if token == "" || s.opts.Access.Token == "" {
		return errors.New("set the token: a server has a token either always or never")
	}
	s.guard.setToken(token)
	return nil
}

// ServeHTTP answers requests that fail the check, and passes on all others.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	// The previous request on this connection may have left a deadline.
	control.SetWriteDeadline(time.Time{}) // fails only for a writer without deadlines
	if r.ContentLength != 0 {
		// net/http reads the rest of the body before it sends an answer, even if the handler does not read it.
		control.SetReadDeadline(time.Now().Add(bodyTimeout)) // fails only for a writer without deadlines
	}
	saved := saveCredentials(r)
	u, err := g.check(r)
	if rec := recordOf(r); rec != nil {
		rec.user = u
		if saved != nil && u != nil && u != noUser {
			saved.user, rec.credentials = u, saved
		}
	}
	if err != nil {
		fail(w, r, err, nil)
		return
	}
	g.next.ServeHTTP(w, r)
}

// check returns the user of a request, and an error if the request must not be answered. The user is nil if there are
// no valid credentials and some are needed. A request without valid credentials counts only against the rate of its
// address.
func (g *guard) check(r *http.Request) (user.Info, error) {
	if isProbe(r) {
		return noUser, nil // a flood of requests must not make a probe fail
	}
	bearer := hasBearerHeader(r) // before an Authenticator removes it
	u, err := g.authenticate(r)
	if err != nil {
		return nil, err
	}
	ok := u != nil
	if ok && !g.clients.Take(string(clientOfUser(u, r)), time.Now()) {
		return u, tooManyRequests(refusedRate, fmt.Sprintf("more than %d requests a second", g.access.Rate), 1)
	}
	if err := g.checkTarget(r); err != nil {
		return u, err
	}
	switch {
	case ok:
	case needsNoUser(r), g.allowsAnonymous(r):
		u = noUser
	default:
		return nil, apierrors.NewUnauthorized("valid credentials are needed, such as \"Authorization: Bearer …\" with a " +
			"token")
	}
	// A browser does not let a page read answers of another origin, except those of a WebSocket.
	if r.Method == http.MethodGet && !isWebSocket(r) || r.Method == http.MethodHead {
		return u, nil
	}
	if !bearer {
		if err := checkOrigin(r); err != nil {
			return u, err
		}
	}
	return u, checkContentType(r)
}

// hasBearerHeader reports whether a request has a bearer token in its Authorization header, valid or not. A browser
// sends no such request for a page of another origin: it would first ask with OPTIONS whether the page may set the
// header, and is never told so. But a program may pass on the requests of its own page, with its own token and with
// the Origin of the page, as Headlamp does.
func hasBearerHeader(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ")
}

// checkTarget returns an error for a request that is too long or for an unknown host.
func (g *guard) checkTarget(r *http.Request) error {
	if len(r.URL.Path)+len(r.URL.RawQuery) > maxTarget {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("path and query are longer than %d bytes", maxTarget))
	}
	if !g.allowsHost(r.Host) {
		return &refusedError{apierrors.NewForbidden(noResource, "",
			fmt.Errorf("the host name %q is not allowed; allow it with --allow-host", clip(r.Host))), refusedHost}
	}
	return nil
}

// allowsHost reports whether requests for a host name are accepted.
func (g *guard) allowsHost(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if IsLoopback(host) {
		return true
	}
	for _, h := range g.access.Hosts {
		if strings.EqualFold(h, host) {
			return true
		}
	}
	return false
}

// needsNoUser reports whether a request needs no credentials. A browser sends none when it loads the page, so its
// files need none. They contain no secrets, and the page reads everything that it shows with credentials. A user that
// logs in has none yet.
func needsNoUser(r *http.Request) bool {
	if isLoginPath(r.URL.Path) {
		return true
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	path := r.URL.Path
	return path == "/" || strings.HasPrefix(path, "/assets/")
}

// authenticate returns the user of a request, nil if it has no valid credentials. Credentials that were not valid in an
// earlier request are checked only at the rate of requests without valid credentials: the error is 429 if there are
// more. So a flood of them costs little, and nothing to users whose credentials were valid before.
func (g *guard) authenticate(r *http.Request) (user.Info, error) {
	switch {
	case g.access.open():
		return localUser, nil
	case g.hasToken(r):
		return tokenUser, nil
	}
	key, has := credentialsOf(r)
	_, known := g.known.Get(key)
	if has && !known {
		if err := g.takeAttempt(r); err != nil {
			return nil, err
		}
	}
	u, err := g.ask(r)
	switch {
	case u != nil && has && !known:
		// A user with many valid credentials must not evict those of other users.
		if g.remembered.Take(u.GetName(), time.Now()) {
			g.known.Add(key, nil)
		}
		g.unauthenticated.GiveBack(ratelimit.Address(r))
		g.attempts.GiveBack("")
		return u, nil
	case u != nil:
		return u, nil
	case known && !isTemporary(err):
		g.known.Remove(key)
	}
	if has || err != nil {
		g.failures.add(r, err)
	}
	if has && !known {
		return nil, nil // it has been counted
	}
	return nil, g.takeUnauthenticated(r)
}

// ask returns the user that the Authenticator finds. If it finds none, the user is nil, and the error may say why.
func (g *guard) ask(r *http.Request) (user.Info, error) {
	if g.access.Authenticator == nil {
		return nil, nil
	}
	u, ok, err := g.access.Authenticator.Authenticate(r)
	if !ok || err != nil {
		return nil, err
	}
	return u, nil
}

// takeUnauthenticated returns an error if the address of a request has sent too many without valid credentials.
func (g *guard) takeUnauthenticated(r *http.Request) error {
	if g.unauthenticated.Take(ratelimit.Address(r), time.Now()) {
		return nil
	}
	return tooManyRequests(refusedRate, fmt.Sprintf("more than %d requests a second without valid credentials",
		unauthenticatedRate), 1)
}

// takeAttempt returns an error if the credentials of a request must not be checked now.
func (g *guard) takeAttempt(r *http.Request) error {
	err := g.takeUnauthenticated(r)
	if err == nil && !g.attempts.Take("", time.Now()) {
		err = tooManyRequests(refusedRate, fmt.Sprintf("more than %d new or invalid credentials a second", attemptRate), 1)
	}
	if err != nil {
		g.failures.unchecked()
	}
	return err
}

// hasToken reports whether a request has the token.
func (g *guard) hasToken(r *http.Request) bool {
	want := g.token.Load()
	if want == nil {
		return false
	}
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		given, ok = subprotocolToken(r)
	}
	sum := sha256.Sum256([]byte(given))
	return ok && subtle.ConstantTimeCompare(sum[:], want[:]) == 1
}

// checkOrigin returns an error for a request that a browser sends for a page of another origin.
func checkOrigin(r *http.Request) error {
	refuse := func(why string) error {
		return &refusedError{apierrors.NewForbidden(noResource, "", errors.New(why+"; a program that passes on the "+
			"requests of its page must send a bearer token, which clients do over TLS only")), refusedOrigin}
	}
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "", "same-origin", "none":
	default:
		return refuse("the request comes from a page of another site")
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
			return refuse("the request comes from a page of another origin")
		}
	}
	return nil
}

// checkContentType returns an error for the body of a cluster that joins if it is not declared to be JSON, which a
// form of a page cannot do.
func checkContentType(r *http.Request) error {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.Method != http.MethodPost || media == jsonType || !isJoinPath(r.URL.Path) {
		return nil
	}
	return apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "post", noResource, "",
		"the body must be application/json", 0, false)
}

// isJoinPath reports whether a POST to a path can change something. The content type of other POSTs does not matter:
// they are refused.
func isJoinPath(path string) bool { return strings.Trim(path, "/") == "clusters" }
