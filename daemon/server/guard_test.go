package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

func TestOtherMachinesNeedTLSAndToken(t *testing.T) {
	for _, c := range []struct {
		address, token string
		tls, ok        bool
	}{
		{"127.0.0.1:8080", "", false, true},
		{"localhost:8080", "", false, true},
		{"[::1]:0", "", false, true},
		{":8080", "", false, false},
		{"0.0.0.0:8080", "", true, false},
		{"0.0.0.0:8080", "t", false, false},
		{"0.0.0.0:8080", "t", true, true},
		{"10.1.2.3:8080", "t", false, false},
		{"nonsense", "t", true, false},
	} {
		if err := (Access{Token: c.token}).CheckAddress(c.address, c.tls); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func guarded(a Access) http.Handler {
	return newGuard(a, func(*http.Request) bool { return false },
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
}

func ask(h http.Handler, method, host, path string, header map[string]string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.Host = host
	for k, v := range header {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestUnknownHostNameIsRefused(t *testing.T) {
	h := guarded(Access{Hosts: []string{"mirror.example.com"}})
	for host, want := range map[string]int{
		"127.0.0.1:8080": http.StatusTeapot, "localhost": http.StatusTeapot, "[::1]:80": http.StatusTeapot,
		"Mirror.Example.com:443": http.StatusTeapot,
		"evil.example.com":       http.StatusForbidden, "127.0.0.1.evil.com:8080": http.StatusForbidden,
		"": http.StatusForbidden,
	} {
		if got := ask(h, "GET", host, "/", nil).Code; got != want {
			t.Errorf("%q : status %d", host, got)
		}
	}
	for path, want := range map[string]int{"/readyz": http.StatusTeapot, "/livez": http.StatusTeapot,
		"/healthz":        http.StatusTeapot,
		"/readyz?verbose": http.StatusForbidden, "/readyz?a&verbose=0": http.StatusForbidden} {
		if got := ask(h, "GET", "10.1.2.3:8443", path, nil).Code; got != want { // kubelets use the pod's address
			t.Errorf("%s with the pod's address as host: status %d", path, got)
		}
	}
}

func TestEverythingExceptProbesPageFilesAndLoginsNeedsTheToken(t *testing.T) {
	h := guarded(Access{Token: "secret"})
	for _, c := range []struct {
		method, path, auth string
		want               int
	}{
		{"GET", "/fleet/api", "", http.StatusUnauthorized},
		{"GET", "/fleet/api", "Bearer secre", http.StatusUnauthorized},
		{"GET", "/fleet/api", "Bearer secret2", http.StatusUnauthorized},
		{"GET", "/fleet/api", "Basic secret", http.StatusUnauthorized},
		{"GET", "/fleet/api", "Bearer secret", http.StatusTeapot},
		{"GET", "/metrics", "", http.StatusUnauthorized},
		{"GET", "/login", "", http.StatusTeapot}, {"GET", "/login/callback?code=x", "", http.StatusTeapot},
		{"POST", "/login/logout", "", http.StatusTeapot}, {"GET", "/loginx", "", http.StatusUnauthorized},
		{"GET", "/clusters", "", http.StatusUnauthorized},
		{"GET", "/clusters?watch=true", "", http.StatusUnauthorized},
		{"POST", "/clusters", "", http.StatusUnauthorized},
		{"DELETE", "/clusters/eu", "", http.StatusUnauthorized},
		{"GET", "/healthz", "", http.StatusTeapot},
		{"GET", "/livez", "", http.StatusTeapot},
		{"HEAD", "/readyz", "", http.StatusTeapot},
		{"GET", "/readyz?verbose", "", http.StatusUnauthorized}, // the answer names clusters
		{"POST", "/readyz", "", http.StatusUnauthorized},
		{"GET", "/readyz/", "", http.StatusUnauthorized},
		{"GET", "/fleet/readyz", "", http.StatusUnauthorized},
		{"GET", "/clusters/eu/livez", "", http.StatusUnauthorized},
		{"GET", "/", "", http.StatusTeapot},
		{"HEAD", "/", "", http.StatusTeapot},
		{"GET", "/?token=secret", "", http.StatusTeapot}, // the page, which needs no token
		{"GET", "/", "Bearer wrong", http.StatusTeapot},
		{"GET", "/assets/0123456789abcdef/main.js", "", http.StatusTeapot},
		{"HEAD", "/assets/0123456789abcdef/main.js", "", http.StatusTeapot},
		{"POST", "/", "", http.StatusUnauthorized},
		{"POST", "/assets/x", "", http.StatusUnauthorized},
		{"DELETE", "/assets/x", "", http.StatusUnauthorized},
		{"GET", "/fleet/api?token=secret", "", http.StatusUnauthorized},
		{"GET", "/assets", "", http.StatusUnauthorized},
		{"GET", "/assetsx/a", "", http.StatusUnauthorized},
		{"GET", "//", "", http.StatusUnauthorized},
		{"GET", "//assets/x", "", http.StatusUnauthorized},
		{"GET", "/index.html", "", http.StatusUnauthorized},
		{"GET", "/clusters/assets/", "", http.StatusUnauthorized},
		{"GET", "/fleet/assets/x", "", http.StatusUnauthorized},
	} {
		w := ask(h, c.method, "localhost", "http://localhost"+c.path, map[string]string{"Authorization": c.auth})
		if w.Code != c.want {
			t.Errorf("%+v: status %d", c, w.Code)
		}
		if strings.Contains(w.Body.String(), "secre") {
			t.Errorf("the answer contains the token: %s", w.Body)
		}
	}
}

// Paths that begin like a file of the page or a login and leave its folder must not reach anything else.
func TestPathsOfPageFilesAndLoginsDoNotReachTheFleet(t *testing.T) {
	fl, err := fleet.New(fleet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	for name, o := range map[string]Options{
		"with a page":    {Access: Access{Token: "secret"}, Page: page, Login: page, Metrics: http.NotFoundHandler()},
		"without a page": {Access: Access{Token: "secret"}},
	} {
		s, err := New(fl, o)
		if err != nil {
			t.Fatal(err)
		}
		want := http.StatusNotFound
		if o.Page != nil {
			want = http.StatusTeapot
		}
		for _, path := range []string{"/", "/assets/", "/assets/../clusters", "/assets/..%2fclusters",
			"/assets/../fleet/api", "/assets//clusters", "/assets/../../metrics", "/assets/%2e%2e/readyz",
			"/login", "/login/", "/login/../clusters", "/login/..%2ffleet/api", "/login//clusters", "/login/../metrics"} {
			if w := ask(s, "GET", "localhost", "http://localhost"+path, nil); w.Code != want {
				t.Errorf("%s: %s has status %d, want %d: %s", name, path, w.Code, want, w.Body)
			}
		}
	}
}

func TestPageOfAnotherOriginCannotJoinOrLeave(t *testing.T) {
	h := guarded(Access{})
	json := "application/json"
	for name, c := range map[string]struct {
		method string
		header map[string]string
		want   int
	}{
		"a program": {"POST", map[string]string{"Content-Type": json}, http.StatusTeapot},
		"our own page": {"POST", map[string]string{"Content-Type": json, "Origin": "http://localhost:80",
			"Sec-Fetch-Site": "same-origin"}, http.StatusTeapot},
		"another origin": {"POST", map[string]string{"Content-Type": json, "Origin": "http://evil.example.com"},
			http.StatusForbidden},
		"another port": {"DELETE", map[string]string{"Origin": "http://localhost:81"}, http.StatusForbidden},
		"no origin":    {"DELETE", map[string]string{"Origin": "null"}, http.StatusForbidden},
		"another site": {"DELETE", map[string]string{"Sec-Fetch-Site": "cross-site"}, http.StatusForbidden},
		"a sibling":    {"DELETE", map[string]string{"Sec-Fetch-Site": "same-site"}, http.StatusForbidden},
		"a form": {"POST", map[string]string{"Content-Type": "application/x-www-form-urlencoded"},
			http.StatusUnsupportedMediaType},
		"text that is JSON":  {"POST", map[string]string{"Content-Type": "text/plain"}, http.StatusUnsupportedMediaType},
		"nothing said of it": {"POST", nil, http.StatusUnsupportedMediaType},
		"a program with a token, for its page": {"POST", map[string]string{"Content-Type": json,
			"Origin": "http://localhost:4466", "Authorization": "Bearer x"}, http.StatusTeapot},
		"a program with a token, for its form": {"POST", map[string]string{"Origin": "http://localhost:4466",
			"Authorization": "Bearer x"}, http.StatusUnsupportedMediaType},
		"a password that the browser has kept": {"DELETE", map[string]string{"Origin": "http://evil.example.com",
			"Authorization": "Basic eDp5"}, http.StatusForbidden},
	} {
		if got := ask(h, c.method, "localhost:80", "/clusters", c.header).Code; got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// A browser asks in this way before it sends a token, or JSON, for a page of another origin.
func TestPageOfAnotherOriginMayNotSendATokenOrJSON(t *testing.T) {
	for name, a := range map[string]Access{"open": {}, "with a token": {Token: "secret"}} {
		for _, path := range []string{"/clusters", "/fleet/api/v1/pods", "/clusters/eu/api/v1/pods?watch=true"} {
			w := ask(guarded(a), "OPTIONS", "localhost:80", path, map[string]string{"Origin": "http://evil.example.com",
				"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"})
			if w.Code != http.StatusForbidden && w.Code != http.StatusUnauthorized {
				t.Errorf("%s: %s has status %d", name, path, w.Code)
			}
			for header := range w.Header() {
				if strings.HasPrefix(header, "Access-Control-") {
					t.Errorf("%s: %s has the header %s", name, path, header)
				}
			}
		}
	}
}

func TestRequestsAreBoundedInSizeAndRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := guarded(Access{Rate: 10})
		if got := ask(guarded(Access{}), "GET", "localhost", "/?where="+strings.Repeat("x", maxTarget),
			nil).Code; got != http.StatusRequestEntityTooLarge {
			t.Errorf("a long request has status %d", got)
		}
		answered := func(n int) (ok int) {
			for range n {
				switch w := ask(h, "GET", "localhost", "/", nil); {
				case w.Code == http.StatusTeapot:
					ok++
				case w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "":
					t.Errorf("status %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
				}
			}
			return ok
		}
		if ok := answered(30); ok != 10 {
			t.Errorf("%d of 30 concurrent requests were accepted", ok)
		}
		time.Sleep(500 * time.Millisecond)
		if ok := answered(30); ok != 5 {
			t.Errorf("%d of 30 requests were accepted half a second later", ok)
		}
		time.Sleep(time.Hour)
		if ok := answered(30); ok != 10 {
			t.Errorf("%d of 30 requests were accepted an hour later", ok)
		}
	})
}

// askFrom sends n requests from an address and counts the answers by status.
func askFrom(h http.Handler, address, token string, n int) map[int]int {
	codes := map[int]int{}
	for range n {
		r := httptest.NewRequest(http.MethodGet, "/fleet/api", nil)
		r.Host, r.RemoteAddr = "localhost", address
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		codes[w.Code]++
	}
	return codes
}

func TestRateLimitsArePerClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := guarded(Access{Token: "secret", Rate: 500})
		if got := askFrom(h, "10.0.0.1:1000", "wrong", 1000); got[http.StatusUnauthorized] != unauthenticatedRate ||
			got[http.StatusTooManyRequests] != 1000-unauthenticatedRate {
			t.Errorf("statuses of a flood without the token: %v", got)
		}
		// the first may share the gateway of the flood
		for _, from := range []string{"10.0.0.1:1001", "10.0.0.2:1000"} {
			if got := askFrom(h, from, "secret", 500); got[http.StatusTeapot] != 500 {
				t.Errorf("statuses of a client at %s during the flood: %v", from, got)
			}
		}
		if got := askFrom(h, "10.0.0.2:1001", "secret", 10); got[http.StatusTooManyRequests] != 10 {
			t.Errorf("statuses of a client above its rate: %v", got)
		}
		if got := askFrom(h, "10.0.0.3:1", "secret", 10); got[http.StatusTeapot] != 10 {
			t.Errorf("statuses of another client: %v", got)
		}
		got := askFrom(h, "[2001:db8::1]:1", "wrong", unauthenticatedRate)
		if got[http.StatusUnauthorized] != unauthenticatedRate {
			t.Errorf("statuses of another address without the token: %v", got)
		}
		if got := askFrom(h, "[2001:db8::ffff]:1", "wrong", 10); got[http.StatusTooManyRequests] != 10 {
			t.Errorf("statuses of another address of the same IPv6 prefix: %v", got)
		}
	})
}

func TestTokenCanBeReplacedButNotRemoved(t *testing.T) {
	fl, err := fleet.New(fleet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(fl, Options{Access: Access{Token: "old"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetToken("new"); err != nil {
		t.Fatal(err)
	}
	if s.SetToken("") == nil {
		t.Error("the token was removed")
	}
	for token, want := range map[string]int{"old": http.StatusUnauthorized, "new": http.StatusNotFound,
		"": http.StatusUnauthorized} {
		if w := ask(s, "GET", "localhost", "http://localhost/nothing",
			map[string]string{"Authorization": "Bearer " + token}); w.Code != want {
			t.Errorf("token %q: status %d", token, w.Code)
		}
	}
	if s, err = New(fl, Options{}); err != nil || s.SetToken("new") == nil {
		t.Errorf("a server without a token accepted one: %v", err)
	}
}
