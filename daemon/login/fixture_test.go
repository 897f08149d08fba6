package login

import (
	"crypto"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/identity"
	"github.com/mirador-k8s/mirador/dev/testissuer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const pageURL = "https://mirror.example.com:8443"

// fixture is a Login, its issuer, and what authenticates tokens, without a network: the clients of the test and of the
// Login call the handlers. It can be used in a bubble of synctest.
type fixture struct {
	*Login
	issuer *testissuer.Issuer
	logins testissuer.Logins
	down   atomic.Bool // the issuer
	noKeys atomic.Bool // the issuer's keys cannot be read
	refuse atomic.Pointer[string]
}

func newFixture(t *testing.T, change ...func(*Options)) *fixture {
	t.Helper()
	f := &fixture{issuer: testissuer.New(t, "login.example.com", map[string]crypto.Signer{"k": testissuer.NewECKey(t)})}
	f.logins = testissuer.Logins{ClientID: "mirador", RedirectURI: pageURL + "/login/callback", KeyID: "k",
		Claims: map[string]any{"sub": "alice"}, Lifetime: time.Hour}
	f.issuer.SetLogins(f.logins)
	o := Options{URL: pageURL, ClientID: "mirador", Users: f}
	for _, c := range change {
		c(&o)
	}
	var err error
	f.Login, err = New(o)
	check(t, err)
	return f
}

// set changes how the issuer logs users in.
func (f *fixture) set(change func(*testissuer.Logins)) {
	change(&f.logins)
	f.issuer.SetLogins(f.logins)
}

// Issuer returns the issuer.
func (f *fixture) Issuer(url string) (*identity.Issuer, error) {
	if url != "" && url != f.issuer.URL {
		return nil, errors.New("the issuer is not configured")
	}
	return &identity.Issuer{URL: f.issuer.URL, DiscoveryURL: f.issuer.URL + "/.well-known/openid-configuration",
		Audiences: []string{"mirador"}, Client: &http.Client{Transport: f}}, nil
}

// RoundTrip sends a request of the Login to the issuer.
func (f *fixture) RoundTrip(r *http.Request) (*http.Response, error) {
	if f.down.Load() {
		return nil, errors.New("connection refused")
	}
	w := httptest.NewRecorder()
	f.issuer.ServeHTTP(w, r)
	return w.Result(), nil
}

// Authenticate accepts tokens that have not expired. daemon/identity verifies them as well.
func (f *fixture) Authenticate(r *http.Request) (user.Info, bool, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return nil, false, nil
	}
	c, err := claimsOf(token)
	if err != nil {
		return nil, false, err
	}
	if f.noKeys.Load() {
		return nil, false, &uncheckedError{"fetching keys"}
	}
	if why := f.refuse.Load(); why != nil {
		return nil, false, errors.New(*why)
	}
	if time.Now().Unix() >= int64(c.Expires) {
		return nil, false, errors.New("token is expired")
	}
	return &user.DefaultInfo{Name: c.Subject}, true, nil
}

// browser sends requests as a browser does: it keeps cookies and follows redirects of the daemon.
type browser struct {
	t   *testing.T
	f   *fixture
	jar *cookiejar.Jar
}

func (f *fixture) browser(t *testing.T) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	check(t, err)
	return &browser{t, f, jar}
}

// get sends a request to the daemon or the issuer.
func (b *browser) get(target string) *http.Response { return b.send(http.MethodGet, target) }

func (b *browser) send(method, target string, header ...string) *http.Response {
	b.t.Helper()
	u, err := url.Parse(target)
	check(b.t, err)
	r := httptest.NewRequest(method, target, nil)
	for _, c := range b.jar.Cookies(u) {
		r.AddCookie(c)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	if strings.HasPrefix(target, pageURL) {
		b.f.Login.ServeHTTP(w, r)
	} else {
		b.f.issuer.ServeHTTP(w, r)
	}
	b.jar.SetCookies(u, w.Result().Cookies())
	return w.Result()
}

// location returns where an answer redirects to.
func location(t *testing.T, resp *http.Response) *url.URL {
	t.Helper()
	u, err := resp.Location()
	if err != nil {
		t.Fatalf("%s, and no redirect", resp.Status)
	}
	return u
}

// atCallback begins a login, and returns the URL to which the issuer sends the browser back.
func (b *browser) atCallback() string {
	b.t.Helper()
	issuer := location(b.t, b.get(pageURL+"/login"))
	return location(b.t, b.get(issuer.String())).String()
}

// logIn logs in, and returns the problem that the page shows, if any.
func (b *browser) logIn() string {
	b.t.Helper()
	return b.callback(b.atCallback())
}

// callback completes a login, and returns the problem that the page shows, if any.
func (b *browser) callback(target string) string {
	b.t.Helper()
	if to := location(b.t, b.get(target)); to.String() != pageURL+"/" {
		b.t.Errorf("the browser is sent to %s", to)
	}
	return b.status().Problem
}

func (b *browser) status() (s Status) {
	b.t.Helper()
	resp := b.get(pageURL + "/login/session")
	check(b.t, json.NewDecoder(resp.Body).Decode(&s))
	return s
}

// user returns the user of a request of the page, "" if it is not authenticated.
func (b *browser) user(header ...string) string {
	b.t.Helper()
	u, err := url.Parse(pageURL)
	check(b.t, err)
	r := httptest.NewRequest(http.MethodGet, pageURL+"/fleet/api/v1/pods", nil)
	for _, c := range b.jar.Cookies(u) {
		r.AddCookie(c)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	who, ok, _ := b.f.Login.Authenticate(r)
	if r.Header.Get("Authorization") != "" && len(header) == 0 {
		b.t.Error("the request has the ID token after it was authenticated")
	}
	if !ok {
		return ""
	}
	return who.GetName()
}
