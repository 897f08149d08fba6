package login

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/dev/testissuer"
)

func TestAUserLogsInAndOut(t *testing.T) {
	f := newFixture(t)
	b := f.browser(t)
	if s := b.status(); s.LoggedIn || s.Problem != "" || s.Issuer != f.issuer.URL || s.Begin != pageURL+"/login" {
		t.Errorf("before the login: %+v", s)
	}
	if problem := b.logIn(); problem != "" {
		t.Fatal(problem)
	}
	if u := b.user(); u != "alice" {
		t.Errorf("the user is %q", u)
	}
	if s := b.status(); !s.LoggedIn || s.Problem != "" {
		t.Errorf("after the login: %+v", s)
	}
	if u := f.browser(t).user(); u != "" {
		t.Errorf("the user of another browser is %q", u)
	}
	if resp := b.send(http.MethodGet, pageURL+"/login/logout"); resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET of the logout is %s", resp.Status)
	}
	kept := b.jar.Cookies(parsed(t, pageURL)) // copies that outlive the logout
	if resp := b.send(http.MethodPost, pageURL+"/login/logout"); resp.StatusCode != http.StatusNoContent {
		t.Errorf("the logout is %s", resp.Status)
	}
	if u, s := b.user(), b.status(); u != "" || s.LoggedIn || s.Problem != "" {
		t.Errorf("after the logout: %q, %+v", u, s)
	}
	b.jar.SetCookies(parsed(t, pageURL), kept)
	if u := b.user(); u != "" {
		t.Errorf("the cookie of a session that has ended is one of %q", u)
	}
}

func TestTheRequestToTheIssuerHasEverythingThatProtectsALogin(t *testing.T) {
	f := newFixture(t)
	b := f.browser(t)
	seen := map[string]bool{}
	for range 3 {
		resp := b.get(pageURL + "/login")
		q := location(t, resp).Query()
		for name, want := range map[string]string{"response_type": "code", "client_id": "mirador",
			"redirect_uri": pageURL + "/login/callback", "code_challenge_method": "S256",
			"scope": "openid profile groups offline_access"} {
			if q.Get(name) != want {
				t.Errorf("%s is %q, want %q", name, q.Get(name), want)
			}
		}
		for _, name := range []string{"state", "nonce", "code_challenge"} {
			if v := q.Get(name); len(v) < 43 || seen[v] {
				t.Errorf("%s is %q, which is too short or was used before", name, v)
			} else {
				seen[v] = true
			}
		}
		if q.Has("code_verifier") || q.Has("client_secret") {
			t.Errorf("a secret is in the URL: %v", q)
		}
		if c := resp.Header.Get("Set-Cookie"); !strings.HasPrefix(c, "__Host-mirador-login-8443=") ||
			!strings.Contains(c, "HttpOnly; Secure; SameSite=Lax") {
			t.Errorf("the cookie of the browser is %s", c)
		}
	}
	done := b.get(b.atCallback())
	for name, want := range map[string]string{"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"} {
		if got := done.Header.Get(name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	if c := done.Header.Get("Set-Cookie"); !strings.HasPrefix(c, "__Host-mirador-session-8443=") ||
		!strings.Contains(c, "Path=/; HttpOnly; Secure; SameSite=Strict") || strings.Contains(c, "Domain") {
		t.Errorf("the cookie of the session is %s", c)
	}
}

func TestALoginIsCompletedOnceAndByItsOwnBrowser(t *testing.T) {
	f := newFixture(t)
	const over = "was not begun in this browser, or is over"
	b := f.browser(t)
	target := b.atCallback()
	other := f.browser(t)
	other.atCallback() // has a cookie, but of another login
	for name, c := range map[string]struct {
		b      *browser
		target string
	}{
		"another browser":         {other, target},
		"a browser that is new":   {f.browser(t), target},
		"another state":           {b, strings.Replace(target, "state=", "state=x", 1)},
		"no state":                {b, pageURL + "/login/callback?code=x"},
		"an error without state":  {b, pageURL + "/login/callback?error=x&error_description=call+this+number"},
		"an empty state":          {b, pageURL + "/login/callback?code=x&state="},
		"no parameters whatever":  {b, pageURL + "/login/callback"},
		"two states, wrong first": {b, pageURL + "/login/callback?state=x&" + strings.SplitN(target, "?", 2)[1]},
	} {
		if problem := c.b.callback(c.target); !strings.Contains(problem, over) {
			t.Errorf("%s: %q", name, problem)
		}
	}
	if n := f.issuer.Exchanges(); n != 0 {
		t.Errorf("invalid states caused %d requests to the issuer", n)
	}
	if problem := b.callback(target); problem != "" {
		t.Errorf("the login itself: %s", problem)
	}
	if problem := b.callback(target); !strings.Contains(problem, over) {
		t.Errorf("the login again: %q", problem)
	}
	// A code that was used before, with the state of a login of one's own.
	used, fresh := parsed(t, target).Query().Get("code"), parsed(t, b.atCallback())
	q := fresh.Query()
	q.Set("code", used)
	fresh.RawQuery = q.Encode()
	if problem := b.callback(fresh.String()); !strings.Contains(problem, "login.example.com has refused the login "+
		"(invalid_grant: the code") {
		t.Errorf("a code that was used: %q", problem)
	}
	// A code of another user's login: its verifier is another one.
	stolen, mine := parsed(t, other.atCallback()).Query().Get("code"), parsed(t, b.atCallback())
	q = mine.Query()
	q.Set("code", stolen)
	mine.RawQuery = q.Encode()
	if problem := b.callback(mine.String()); !strings.Contains(problem, "invalid_grant") {
		t.Errorf("a code of another login: %q", problem)
	}
}

func parsed(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	check(t, err)
	return u
}

func TestTwoTabsOfABrowserLogInAtTheSameTime(t *testing.T) {
	f := newFixture(t)
	b := f.browser(t)
	one, two := b.atCallback(), b.atCallback()
	if problem := b.callback(one) + b.callback(two); problem != "" {
		t.Error(problem)
	}
	if n := f.sessions.recent.Len(); n != 1 {
		t.Errorf("the browser has %d sessions; a login replaces the session that it had", n)
	}
}

func TestNoParameterChangesWhereTheBrowserIsSent(t *testing.T) {
	f := newFixture(t)
	b := f.browser(t)
	const evil = "https%3A%2F%2Fevil.example.com%2F"
	query := ""
	for _, name := range []string{"return", "return_to", "redirect", "redirect_uri", "next", "rd", "url", "target",
		"state", "client_id", "scope", "iss", "response_mode"} {
		query += "&" + name + "=" + evil
	}
	for _, path := range []string{"/login?" + query[1:], "/login?//evil.example.com"} {
		to := location(t, b.get(pageURL+path))
		if to.Host != "login.example.com" || strings.Contains(to.String(), "evil") {
			t.Errorf("%s leads to %s", path, to)
		}
	}
	target := b.atCallback() + strings.ReplaceAll(strings.ReplaceAll(query, "&state=", "&x="), "&iss=", "&y=")
	if to := location(t, b.get(target)); to.String() != pageURL+"/" {
		t.Errorf("the callback leads to %s", to)
	}
	if u := b.user(); u != "alice" {
		t.Errorf("the user is %q", u)
	}
	if problem := b.callback(b.atCallback() + "&iss=" + evil); !strings.Contains(problem, "another issuer") {
		t.Errorf("the answer of another issuer: %q", problem)
	}
	for _, host := range []string{"evil.example.com", "evil.example.com:8443"} {
		r := b.send(http.MethodGet, pageURL+"/login", "X-Forwarded-Host", host, "Forwarded", "host="+host)
		if u := location(t, r).Query().Get("redirect_uri"); u != pageURL+"/login/callback" {
			t.Errorf("the redirect URI is %s", u)
		}
	}
}

func TestTheCookieCountsOnlyInRequestsOfThePage(t *testing.T) {
	f := newFixture(t)
	b := f.browser(t)
	if problem := b.logIn(); problem != "" {
		t.Fatal(problem)
	}
	for site, want := range map[string]string{"same-origin": "alice", "none": "alice", "same-site": "", "cross-site": ""} {
		if u := b.user("Sec-Fetch-Site", site); u != want {
			t.Errorf("a request with Sec-Fetch-Site %s is one of %q, want %q", site, u, want)
		}
	}
	bob := f.issuer.Token("k", map[string]any{"sub": "bob"})
	if u := b.user("Authorization", "Bearer "+bob); u != "bob" {
		t.Errorf("a request with a bearer token is one of %q", u)
	}
	if u := b.user("Authorization", "Bearer wrong"); u != "" {
		t.Errorf("a request with a wrong bearer token is one of %q", u)
	}
	if r := b.send(http.MethodGet, pageURL+"/login", "Sec-Fetch-Mode", "no-cors"); r.StatusCode != http.StatusForbidden {
		t.Errorf("a login that an image begins is %s", r.Status)
	}
}

func TestErrorsOfTheIssuerAreShownInWords(t *testing.T) {
	f := newFixture(t)
	refusal := "the hosted domain must be example.com"
	for name, c := range map[string]struct {
		set  func(*testissuer.Logins)
		want string
	}{
		"denied": {func(l *testissuer.Logins) { l.Deny = "not a member\nof the group" },
			"login.example.com has refused the login (access_denied: not a member of the group). Log in again, or ask"},
		"a wrong client":  {func(l *testissuer.Logins) { l.ClientSecret = "other" }, "Check --login-client-id and"},
		"an old token":    {func(l *testissuer.Logins) { l.Lifetime = -time.Minute }, "is refused: token is expired. Ask"},
		"a wrong nonce":   {func(l *testissuer.Logins) { l.Claims["nonce"] = "x" }, "is not one of this login"},
		"no nonce":        {func(l *testissuer.Logins) { l.Claims["nonce"] = "" }, "is not one of this login"},
		"a wrong aud":     {func(l *testissuer.Logins) { l.Claims["aud"] = "x" }, "is for another client"},
		"a wrong azp":     {func(l *testissuer.Logins) { l.Claims["azp"] = "x" }, "is for another client"},
		"a wrong issuer":  {func(l *testissuer.Logins) { l.Claims["iss"] = "https://x" }, "is for another client"},
		"a refused user":  {func(*testissuer.Logins) { f.refuse.Store(&refusal) }, "is refused: " + refusal + ". Ask"},
		"two audiences":   {func(l *testissuer.Logins) { l.Claims["aud"] = []string{"x", "mirador"} }, ""},
		"a long sentence": {func(l *testissuer.Logins) { l.Deny = strings.Repeat("long ", 1000) }, "…"},
	} {
		f.logins = testissuer.Logins{ClientID: "mirador", RedirectURI: pageURL + "/login/callback", KeyID: "k",
			Claims: map[string]any{"sub": "alice"}, Lifetime: time.Hour}
		f.refuse.Store(nil)
		f.set(c.set)
		b := f.browser(t)
		problem := b.logIn()
		if c.want == "" && problem != "" || !strings.Contains(problem, c.want) || len(problem) > maxProblem {
			t.Errorf("%s: %q, want %q", name, problem, c.want)
		}
		if c.want != "" && b.user() != "" {
			t.Errorf("%s: the user is logged in", name)
		}
		if again := b.status().Problem; again != "" {
			t.Errorf("%s: the problem is told twice: %s", name, again)
		}
	}
}

func TestAnIssuerThatCannotBeUsedIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		b := f.browser(t)
		problem := func() string {
			t.Helper()
			time.Sleep(discoveryAge) // of the bubble
			resp := b.get(pageURL + "/login")
			if to := location(t, resp); to.String() != pageURL+"/" {
				t.Errorf("the browser is sent to %s", to)
			}
			return b.status().Problem
		}
		f.down.Store(true)
		if p := problem(); p != "login.example.com cannot be reached: connection refused. Try again later." {
			t.Error(p)
		}
		f.down.Store(false)
		for field, value := range map[string]any{"issuer": "https://evil.example.com", "token_endpoint": "http://x/token",
			"authorization_endpoint": "javascript:alert(1)", "code_challenge_methods_supported": []string{"plain"}} {
			f.set(func(l *testissuer.Logins) { l.Document = map[string]any{field: value} })
			if p := problem(); !strings.Contains(p, "login.example.com") {
				t.Errorf("%s: %q", field, p)
			}
		}
		f.set(func(l *testissuer.Logins) {
			l.Document = map[string]any{"end_session_endpoint": "https://login.example.com/out"}
		})
		time.Sleep(discoveryAge)
		target := b.atCallback()
		f.down.Store(true)
		if p := b.callback(target); !strings.Contains(p, "cannot be reached: connection refused") {
			t.Errorf("down at the end of a login: %q", p)
		}
		if s := b.status(); s.EndSession != "https://login.example.com/out" {
			t.Errorf("the page of the issuer for logging out is %q", s.EndSession)
		}
	})
}

func TestASessionEndsWithItsTokenIfThereIsNoRefreshToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		b := f.browser(t)
		if problem := b.logIn(); problem != "" {
			t.Fatal(problem)
		}
		time.Sleep(time.Hour - time.Second)
		if u := b.user(); u != "alice" {
			t.Errorf("a second before the end the user is %q", u)
		}
		time.Sleep(time.Second)
		if u, s := b.user(), b.status(); u != "" || s.Problem != "The session has expired. Log in again." {
			t.Errorf("at the end the user is %q, and the problem %q", u, s.Problem)
		}
	})
}

func TestASessionIsRenewedOnceForAllRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.set(func(l *testissuer.Logins) { l.Refresh = true })
		b := f.browser(t)
		if problem := b.logIn(); problem != "" {
			t.Fatal(problem)
		}
		for hour := range 20 {
			time.Sleep(time.Hour) // the token has expired
			before := f.issuer.Exchanges()
			var wg sync.WaitGroup
			for range 10 {
				wg.Go(func() {
					if u := b.user(); u != "alice" {
						t.Errorf("after %d hours the user is %q", hour+1, u)
					}
				})
			}
			wg.Wait()
			if n := f.issuer.Exchanges() - before; n != 1 {
				t.Errorf("10 requests caused %d requests to the issuer; want 1", n)
			}
		}
		// An issuer that is down for a while ends nothing, and is not asked for each request.
		time.Sleep(time.Hour)
		f.down.Store(true)
		for range 3 {
			if u := b.user(); u != "" {
				t.Errorf("the user is %q", u)
			}
		}
		if s := b.status(); !s.LoggedIn || !strings.Contains(s.Problem, "cannot be reached") {
			t.Errorf("while the issuer is down: %+v", s)
		}
		f.down.Store(false)
		time.Sleep(refreshRetry)
		if u := b.user(); u != "alice" {
			t.Errorf("when the issuer is back the user is %q", u)
		}
		time.Sleep(4 * time.Hour)
		if u, s := b.user(), b.status(); u != "" || s.LoggedIn {
			t.Errorf("after a day the user is %q: %+v", u, s)
		}
	})
}

func TestASessionOutlivesATimeInWhichItsNewTokenCannotBeVerified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.set(func(l *testissuer.Logins) { l.Refresh = true })
		b := f.browser(t)
		if problem := b.logIn(); problem != "" {
			t.Fatal(problem)
		}
		time.Sleep(time.Hour)
		f.noKeys.Store(true)
		for range 3 { // the issuer accepts each refresh token once
			if u, s := b.user(), b.status(); u != "" || !strings.Contains(s.Problem, "cannot be verified at the moment") {
				t.Errorf("while the keys cannot be read the user is %q: %+v", u, s)
			}
			time.Sleep(refreshRetry)
		}
		f.noKeys.Store(false)
		if u, s := b.user(), b.status(); u != "alice" || s.Problem != "" {
			t.Errorf("when the keys can be read again the user is %q: %+v", u, s)
		}
		f.noKeys.Store(true)
		if problem := f.browser(t).logIn(); !strings.Contains(problem, "cannot be verified at the moment: fetching keys. ") {
			t.Errorf("a login whose token cannot be verified: %q", problem)
		}
	})
}

func TestASessionEndsWhenTheIssuerRefusesToRenewIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, refuse := range map[string]func(*fixture){
			"revoked":      func(f *fixture) { f.issuer.RevokeRefreshTokens() },
			"another user": func(f *fixture) { f.logins.Claims["sub"] = "mallory" },
			"another client": func(f *fixture) {
				f.logins.Claims["aud"] = "other"
			},
		} {
			f := newFixture(t)
			f.set(func(l *testissuer.Logins) { l.Refresh = true })
			b := f.browser(t)
			if problem := b.logIn(); problem != "" {
				t.Fatal(problem)
			}
			refuse(f)
			time.Sleep(time.Hour)
			if u := b.user(); u != "" {
				t.Errorf("%s: the user is %q", name, u)
			}
			before := f.issuer.Exchanges()
			if u, s := b.user(), b.status(); u != "" || !strings.Contains(s.Problem, "Log in again") {
				t.Errorf("%s: the user is %q, and the problem %q", name, u, s.Problem)
			}
			if n := f.issuer.Exchanges() - before; n != 0 {
				t.Errorf("%s: the issuer was asked again", name)
			}
		}
	})
}

func TestLoginsAndSessionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		b := f.browser(t)
		first := b.atCallback()
		for range 20_000 {
			f.pending.begin("mallory", time.Now())
		}
		if problem := b.callback(first); problem != "" {
			t.Errorf("a login that began before many others: %s", problem)
		}
		for range maxCompleted + 100 {
			p := f.pending.begin("mallory", time.Now())
			if f.pending.take(p.state, "mallory", time.Now()) == nil {
				t.Fatal("a login is not completed")
			}
		}
		if n := len(f.pending.completed); n != maxCompleted || len(f.pending.order) != n {
			t.Errorf("%d completed logins are remembered, want %d", n, maxCompleted)
		}
		late := b.atCallback()
		cookies := b.jar.Cookies(parsed(t, pageURL))
		time.Sleep(pendingAge)
		b.jar.SetCookies(parsed(t, pageURL), cookies) // which the browser has dropped
		if problem := b.callback(late); !strings.Contains(problem, "is over") {
			t.Errorf("a login that took ten minutes: %q", problem)
		}
		if problem := b.logIn(); problem != "" {
			t.Error(problem)
		}
		if n := len(f.pending.completed); n != 1 || len(f.pending.order) != n {
			t.Errorf("%d completed logins are remembered; old ones are forgotten", n)
		}

		for i := range maxUserSessions + 5 {
			f.sessions.add(&session{user: "mallory", began: time.Now(), idToken: fmt.Sprint(i)})
		}
		if n := f.sessions.recent.Len(); n != maxUserSessions+1 {
			t.Errorf("there are %d sessions; want those of one user to be at most %d", n, maxUserSessions)
		}
		if u := b.user(); u != "alice" {
			t.Errorf("another user's sessions have ended that of alice")
		}
		for i := range maxSessions {
			f.sessions.add(&session{user: fmt.Sprint(i), began: time.Now()})
		}
		if n := len(f.sessions.byID); n != maxSessions || f.sessions.recent.Len() != n {
			t.Errorf("there are %d sessions, want %d", n, maxSessions)
		}

		target := f.browser(t)
		at := target.atCallback()
		var leave []func()
		enter := func(address string) error {
			r := httptest.NewRequest(http.MethodGet, pageURL, nil)
			r.RemoteAddr = address + ":1234"
			done, err := f.exchanges.enter(r)
			if err == nil {
				leave = append(leave, done)
			}
			return err
		}
		for range maxExchanges {
			_ = enter("10.0.0.1") // too many are refused
		}
		if n := len(leave); n != maxExchangesOfAddress {
			t.Errorf("%d logins of one address are completed at a time, want %d", n, maxExchangesOfAddress)
		}
		for i := range maxExchanges - maxExchangesOfAddress {
			check(t, enter(fmt.Sprintf("10.0.1.%d", i)))
		}
		if problem := target.callback(at); problem != errBusy.Error() {
			t.Errorf("too many exchanges: %q", problem)
		}
		for _, done := range leave {
			done()
		}
		if problem := target.callback(at); problem != "" {
			t.Errorf("the same login later: %q", problem)
		}
	})
}

func TestAClientWithASecretSendsItToTheTokenEndpointOnly(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	check(t, os.WriteFile(file, []byte("s3cret\n"), 0o600))
	for _, methods := range []any{nil, []string{"client_secret_post"}, []string{"client_secret_basic"}} {
		f := newFixture(t, func(o *Options) { o.ClientSecretFile, o.Scopes = file, []string{"openid", "roles"} })
		f.set(func(l *testissuer.Logins) {
			l.ClientSecret = "s3cret"
			if methods != nil {
				l.Document = map[string]any{"token_endpoint_auth_methods_supported": methods}
			}
		})
		b := f.browser(t)
		resp := b.get(pageURL + "/login")
		if to := location(t, resp); strings.Contains(to.String(), "s3cret") || to.Query().Get("scope") != "openid roles" {
			t.Errorf("the URL of the issuer is %s", to)
		}
		if problem := b.logIn(); problem != "" {
			t.Errorf("with %v: %s", methods, problem)
		}
		check(t, os.WriteFile(file, []byte("another\n"), 0o600)) // it is read for each login
		if problem := b.logIn(); !strings.Contains(problem, "--login-client-secret-file") ||
			strings.Contains(problem, "another") {
			t.Errorf("with another secret: %q", problem)
		}
		check(t, os.WriteFile(file, []byte("s3cret\n"), 0o600))
	}
}

func TestNoAnswerHasATokenOrASecret(t *testing.T) {
	f := newFixture(t)
	f.set(func(l *testissuer.Logins) { l.Refresh = true })
	b := f.browser(t)
	var sent strings.Builder
	note := func(resp *http.Response) *http.Response {
		check(t, resp.Header.Write(&sent))
		body, err := io.ReadAll(resp.Body)
		check(t, err)
		sent.Write(body)
		return resp
	}
	issuer := location(t, note(b.get(pageURL+"/login")))
	data, err := base64.RawURLEncoding.DecodeString(issuer.Query().Get("state"))
	check(t, err)
	verifier := f.pending.login(stateData(data[:len(stateData{})]), "").verifier
	sum := sha256.Sum256([]byte(verifier))
	if base64.RawURLEncoding.EncodeToString(sum[:]) != issuer.Query().Get("code_challenge") {
		t.Error("the code verifier is another one")
	}
	note(b.get(location(t, b.get(issuer.String())).String()))
	note(b.get(pageURL + "/login/session"))
	s := f.sessions.recent.Front().Value.(*sessionEntry).session
	for what, secret := range map[string]string{"verifier": verifier, "ID token": s.idToken, "refresh token": s.refresh} {
		if secret == "" || strings.Contains(sent.String(), secret) {
			t.Errorf("the %s is missing or was sent to the browser", what)
		}
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	f := newFixture(t)
	empty := filepath.Join(t.TempDir(), "empty")
	check(t, os.WriteFile(empty, nil, 0o600))
	for want, change := range map[string]func(*Options){
		"the audiences of the issuer": func(o *Options) { o.ClientID = "other" },
		"is not configured":           func(o *Options) { o.Issuer = "https://x" },
		"read the client secret":      func(o *Options) { o.ClientSecretFile = "/absent" },
		"is empty":                    func(o *Options) { o.ClientSecretFile = empty },
		`is "mirror.example.com"`:     func(o *Options) { o.URL = "mirror.example.com" },
		`is "ftp://x"`:                func(o *Options) { o.URL = "ftp://x" },
		`is "https://x/path"`:         func(o *Options) { o.URL = "https://x/path" },
		`is "https://a@x"`:            func(o *Options) { o.URL = "https://a@x" },
	} {
		o := Options{URL: pageURL, ClientID: "mirador", Users: f}
		change(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
