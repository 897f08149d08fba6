package login

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/identity"
)

// Users authenticates requests with bearer tokens, and knows the issuers of the tokens. It is an
// *identity.Authenticator.
type Users interface {
	Authenticate(r *http.Request) (u user.Info, ok bool, err error)
	Issuer(url string) (*identity.Issuer, error)
}

// Options configure a Login.
type Options struct {
	// URL is the address of the page for browsers, such as https://mirror.example.com:8443. The redirect URI, which the
	// issuer has to know, is this and /login/callback.
	URL string
	// Issuer is the URL of the issuer. "" means the only one that Users knows.
	Issuer string
	// ClientID is the name of the client at the issuer. Tokens must have it as an audience.
	ClientID string
	// ClientSecretFile is a file with the client's secret, which is read for each login. "" means a public client.
	ClientSecretFile string
	// Scopes are requested besides openid. nil means those of profile, email, groups and offline_access that the issuer
	// supports.
	Scopes []string
	// Users authenticates the tokens.
	Users Users
}

// Login serves the paths below /login, and authenticates requests with the cookie of a session. It may be used
// concurrently.
type Login struct {
	opts      Options
	page      *url.URL
	provider  providerCache
	pending   *pendingLogins
	sessions  sessions
	exchanges exchanges
}

// New returns a Login. It returns an error if the options cannot work with the issuers that are configured.
func New(o Options) (*Login, error) {
	page, err := url.Parse(o.URL)
	if err != nil || page.Host == "" || page.Scheme != "https" && page.Scheme != "http" ||
		strings.Trim(page.Path, "/") != "" || page.RawQuery != "" || page.Fragment != "" || page.User != nil {
		return nil, fmt.Errorf("the URL of the page is %q; it must be a scheme, a host and a port, such as "+
			"https://mirror.example.com:8443", o.URL)
	}
	issuer, err := o.Users.Issuer(o.Issuer)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(issuer.Audiences, o.ClientID) {
		return nil, fmt.Errorf("tokens for the client ID %q would be refused: the audiences of the issuer %q are %s; add "+
			"the client ID to them in the authentication configuration", o.ClientID, issuer.URL,
			strings.Join(issuer.Audiences, ", "))
	}
	l := &Login{opts: o, page: &url.URL{Scheme: page.Scheme, Host: page.Host},
		provider: providerCache{turn: make(chan struct{}, 1)}, pending: newPendingLogins()}
	if _, err := l.secret(); err != nil {
		return nil, err
	}
	return l, nil
}

// secret returns the client's secret, "" for a public client.
func (l *Login) secret() (string, error) {
	if l.opts.ClientSecretFile == "" {
		return "", nil
	}
	b, err := os.ReadFile(l.opts.ClientSecretFile)
	if err != nil {
		return "", fmt.Errorf("read the client secret: %w", err)
	}
	secret := strings.TrimSpace(string(b))
	if secret == "" {
		return "", fmt.Errorf("the file %s of the client secret is empty", l.opts.ClientSecretFile)
	}
	return secret, nil
}

// Paths of the Login.
const (
	beginPath    = "/login"
	callbackPath = "/login/callback"
	sessionPath  = "/login/session"
	logoutPath   = "/login/logout"
)

// redirectURI is where the issuer sends the browser after a login.
func (l *Login) redirectURI() string { return l.page.String() + callbackPath }

// Authenticate returns the user of a request. A request without a bearer token and with the cookie of a session is one
// with the session's ID token.
func (l *Login) Authenticate(r *http.Request) (user.Info, bool, error) {
	token := ""
	if r.Header.Get("Authorization") == "" && fromThePage(r) {
		if s := l.sessions.get(l.cookie(r, sessionCookie), time.Now()); s != nil {
			token, _ = s.token(r.Context(), l) // without one, other credentials may count, such as a certificate
		}
	}
	if token == "" {
		return l.opts.Users.Authenticate(r)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	u, ok, err := l.opts.Users.Authenticate(r)
	r.Header.Del("Authorization")
	return u, ok, err
}

// fromThePage reports whether a request is not one of a page of another origin, as far as the browser says.
func fromThePage(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "" || site == "same-origin" || site == "none"
}

// ServeHTTP serves the paths below /login. They need no user.
func (l *Login) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	method := http.MethodGet
	if r.URL.Path == logoutPath {
		method = http.MethodPost
	}
	if r.Method != method {
		h.Set("Allow", method)
		http.Error(w, "only "+method+" is possible here", http.StatusMethodNotAllowed)
		return
	}
	switch r.URL.Path {
	case beginPath:
		if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" && mode != "navigate" {
			http.Error(w, "a login begins by opening this address in a browser", http.StatusForbidden)
			return
		}
		target, err := l.begin(w, r)
		l.redirect(w, r, target, err)
	case callbackPath:
		l.redirect(w, r, l.page.String()+"/", l.complete(w, r))
	case sessionPath:
		l.describe(w, r)
	case logoutPath:
		l.sessions.remove(l.cookie(r, sessionCookie))
		l.setCookie(w, sessionCookie, "", http.SameSiteStrictMode, -1)
		w.WriteHeader(http.StatusNoContent)
	default:
		http.NotFound(w, r)
	}
}

// redirect sends the browser to a URL, or, if there is an error, to the page, which shows it.
func (l *Login) redirect(w http.ResponseWriter, r *http.Request, target string, err error) {
	if err != nil {
		l.setCookie(w, problemCookie, base64.RawURLEncoding.EncodeToString([]byte(clip(err.Error(), maxProblem))),
			http.SameSiteStrictMode, time.Minute)
		target = l.page.String() + "/"
	}
	http.Redirect(w, r, target, http.StatusSeeOther)
}

// maxProblem is how many bytes of an error are shown.
const maxProblem = 600

// Status is what the page is told about the session of its browser, at /login/session.
type Status struct {
	// Issuer is the URL of the issuer, and Begin the URL at which a login begins.
	Issuer string `json:"issuer"`
	Begin  string `json:"begin"`
	// LoggedIn says that there is a session, and Problem why there is none or why it cannot be used.
	LoggedIn bool   `json:"loggedIn"`
	Problem  string `json:"problem,omitempty"`
	// EndSession is a page of the issuer at which users end their session there.
	EndSession string `json:"endSession,omitempty"`
}

// describe answers with the Status of the browser's session. A problem of a login is told once.
func (l *Login) describe(w http.ResponseWriter, r *http.Request) {
	status := Status{Issuer: l.opts.Issuer, Begin: l.page.String() + beginPath}
	if issuer, err := l.opts.Users.Issuer(l.opts.Issuer); err != nil {
		status.Problem = err.Error()
	} else {
		status.Issuer = issuer.URL
	}
	status.EndSession = l.provider.endSession()
	if id := l.cookie(r, sessionCookie); id != "" {
		if s := l.sessions.get(id, time.Now()); s != nil {
			status.LoggedIn, status.Problem = true, s.problem()
		} else {
			status.Problem = "The session has ended. Log in again."
			l.setCookie(w, sessionCookie, "", http.SameSiteStrictMode, -1)
		}
	}
	if text, err := base64.RawURLEncoding.DecodeString(l.cookie(r, problemCookie)); err == nil && len(text) > 0 {
		status.Problem = clip(string(text), maxProblem)
		l.setCookie(w, problemCookie, "", http.SameSiteStrictMode, -1)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(&status) // an error means that the client is gone
}

// Cookies. The names get the port of the page, because browsers send the cookies of one port to all.
const (
	sessionCookie = "mirador-session" // the ID of a session
	browserCookie = "mirador-login"   // identifies the browser that starts a login
	problemCookie = "mirador-problem" // the error of a login, for the page
)

// cookieName returns the full name of a cookie. With TLS its prefix makes the browser refuse such a cookie from another
// host.
func (l *Login) cookieName(name string) string {
	if port := l.page.Port(); port != "" {
		name += "-" + port
	}
	if l.page.Scheme == "https" {
		name = "__Host-" + name
	}
	return name
}

func (l *Login) cookie(r *http.Request, name string) string {
	c, err := r.Cookie(l.cookieName(name))
	if err != nil {
		return ""
	}
	return c.Value
}

// setCookie sets a cookie; age 0 means until the browser is closed, and less removes it.
func (l *Login) setCookie(w http.ResponseWriter, name, value string, site http.SameSite, age time.Duration) {
	c := &http.Cookie{Name: l.cookieName(name), Value: value, Path: "/", HttpOnly: true, SameSite: site,
		Secure: l.page.Scheme == "https", MaxAge: int(age.Seconds())}
	if age < 0 {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// randomText returns 256 random bits as text.
func randomText() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// clip bounds a text that can contain what an issuer answered, and makes it one line.
func clip(text string, most int) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// problem is an error in words for the users of the page: what happened, and what to do next.
type problem string

// Error returns the text.
func (p problem) Error() string { return string(p) }

func problemf(format string, args ...any) error { return problem(fmt.Sprintf(format, args...)) }

const errBusy problem = "Too many logins are in progress. Try again in a moment."
