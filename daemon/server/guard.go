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
)

// Access says who may ask. The zero Access is for a server on this machine alone: anybody who can
// reach it may read.
type Access struct {
	// Token is asked of every request as "Authorization: Bearer …", except for /healthz, /livez and /readyz and the
	// files of the page. "" asks for none.
	Token string
	// Hosts are the names under which the server may be asked besides those of this machine.
	// A page elsewhere that has its own name lead here is refused by this.
	Hosts []string
	// Rate is how many requests a second each client may send, and Watches how many watches may be open, of which one
	// client gets half at most. 0 means 20,000 and 10,000. Requests without a valid token have a limit of their own for
	// each address, so that they take nothing from clients.
	Rate, Watches int
}

// CheckAddress refuses to serve other machines without TLS and a token.
func (a Access) CheckAddress(address string, tls bool) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("listen on %q: it is no address; write host:port, such as 127.0.0.1:8090", address)
	}
	if isLoopback(host) {
		return nil
	}
	switch {
	case a.Token == "":
		return fmt.Errorf("listen on %q, which other machines can reach: a token is needed; give one with --token-file, "+
			"or listen on 127.0.0.1", address)
	case !tls:
		return fmt.Errorf("listen on %q, which other machines can reach: a certificate is needed, or the token could be "+
			"read on its way; give one with --tls-cert and --tls-key, or listen on 127.0.0.1", address)
	}
	return nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// bodyTimeout is how long the body of a request may take to arrive. Those that are read are 1 MiB at most.
const bodyTimeout = 30 * time.Second

// maxTarget is how long a request's path and query may be.
const maxTarget = 16 << 10

// guard checks every request before anything else looks at it.
type guard struct {
	access Access
	// its hash, of one length, so that the time of a compare tells nothing; nil asks for none
	token           atomic.Pointer[[sha256.Size]byte]
	client          func(*http.Request) clientKey
	clients         *rateTable // requests with the token, or any where none is asked for
	unauthenticated *rateTable // all others, by address
	next            http.Handler
}

// unauthenticatedRate is how many requests a second an address may send without a valid token: enough to load the page.
const unauthenticatedRate = 200

func newGuard(a Access, client func(*http.Request) clientKey, next http.Handler) *guard {
	if a.Rate == 0 {
		a.Rate = 20_000
	}
	g := &guard{access: a, client: client, clients: newRateTable(a.Rate),
		unauthenticated: newRateTable(unauthenticatedRate), next: next}
	if a.Token != "" {
		g.setToken(a.Token)
	}
	return g
}

func (g *guard) setToken(token string) {
	sum := sha256.Sum256([]byte(token))
	g.token.Store(&sum)
}

// SetToken replaces the token that clients are asked for. Requests that have begun, such as watches, go on. A server
// that was made without a token cannot be given one, nor can one be taken away.
func (s *Server) SetToken(token string) error {
	if token == "" || s.opts.Access.Token == "" {
		return errors.New("set the token: a server has a token from its start to its end, or none")
	}
	s.guard.setToken(token)
	return nil
}

// ServeHTTP refuses what it must and hands on the rest.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	// The request before on this connection may have left one.
	control.SetWriteDeadline(time.Time{}) // where there are none, none is left
	if r.ContentLength != 0 {
		// net/http reads the body to its end before it sends an answer, also where no handler does.
		control.SetReadDeadline(time.Now().Add(bodyTimeout)) // a writer without deadlines has no slow client
	}
	if err := g.check(r); err != nil {
		fail(w, r, err, nil)
		return
	}
	g.next.ServeHTTP(w, r)
}

// check refuses a request that may not be answered. What has no valid token costs little and counts for its address
// alone.
func (g *guard) check(r *http.Request) error {
	if isProbe(r) {
		return nil // and no flood of others makes a probe fail
	}
	trusted := g.hasToken(r)
	if trusted && !g.clients.take(g.client(r), time.Now()) {
		return apierrors.NewTooManyRequests(fmt.Sprintf("more than %d requests a second", g.access.Rate), 1)
	}
	if !trusted && !g.unauthenticated.take(clientKey(remoteAddress(r)), time.Now()) {
		return apierrors.NewTooManyRequests(fmt.Sprintf("more than %d requests a second without a valid token",
			unauthenticatedRate), 1)
	}
	if len(r.URL.Path)+len(r.URL.RawQuery) > maxTarget {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("path and query are longer than %d bytes", maxTarget))
	}
	if !g.allowsHost(r.Host) {
		return apierrors.NewForbidden(noResource, "",
			fmt.Errorf("the server is not known as %q here; name it by --allow-host if it should be", clip(r.Host)))
	}
	if !trusted && !needsNoToken(r) {
		return apierrors.NewUnauthorized("a valid token is needed, as \"Authorization: Bearer …\"")
	}
	// A browser lets no page read an answer of another origin, unless it comes over a WebSocket.
	if r.Method != http.MethodGet && r.Method != http.MethodHead || isWebSocket(r) {
		return g.checkOrigin(r)
	}
	return nil
}

// knows reports whether the server may be asked under a name.
func (g *guard) allowsHost(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if isLoopback(host) {
		return true
	}
	for _, h := range g.access.Hosts {
		if strings.EqualFold(h, host) {
			return true
		}
	}
	return false
}

// needsNoToken reports whether a request needs no token. The files of the page are open because a browser sends no
// token when it loads a page; there is no secret in them, and all that they show is asked for with a token.
func needsNoToken(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	path := r.URL.Path
	return path == "/" || strings.HasPrefix(path, "/assets/")
}

// authentic reports whether a request has the token, or none is asked for.
func (g *guard) hasToken(r *http.Request) bool {
	want := g.token.Load()
	if want == nil {
		return true
	}
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		given, ok = subprotocolToken(r)
	}
	sum := sha256.Sum256([]byte(given))
	return ok && subtle.ConstantTimeCompare(sum[:], want[:]) == 1
}

// checkOrigin refuses what a page of another origin has a browser send.
func (g *guard) checkOrigin(r *http.Request) error {
	refuse := func(why string) error { return apierrors.NewForbidden(noResource, "", errors.New(why)) }
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
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); r.Method == http.MethodPost &&
		media != jsonType && isJoinPath(r.URL.Path) {
		return apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "post", noResource, "",
			"the body must be application/json", 0, false)
	}
	return nil
}

// joins reports whether a POST to a path has an effect. Every other is answered with where to send it, in whatever
// form it comes.
func isJoinPath(path string) bool { return strings.Trim(path, "/") == "clusters" }
