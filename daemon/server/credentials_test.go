package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apiserver/pkg/authentication/user"
)

// tokens is an Authenticator that knows the users of tokens and counts how often it is asked.
type tokens struct {
	mu    sync.Mutex
	users map[string]string
	down  bool
	asked int
}

type outage struct{ error }

func (outage) Temporary() bool { return true }

func (a *tokens) Authenticate(r *http.Request) (user.Info, bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if a.down {
		return nil, false, outage{errors.New("the issuer does not answer")}
	}
	name, ok := a.users[token]
	if !ok {
		return nil, false, fmt.Errorf("the token %s is not known", token)
	}
	r.Header.Del("Authorization")
	return &user.DefaultInfo{Name: name, Extra: map[string][]string{"id": {fmt.Sprint(a.asked)}}}, true, nil
}

func (a *tokens) set(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

// send sends a request with a token from an address, and returns the status of the answer.
func send(h http.Handler, address, token string) int {
	r := httptest.NewRequest(http.MethodGet, "http://localhost/fleet/api", nil)
	r.RemoteAddr = address + ":1234"
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

func TestAFloodOfBadTokensCostsLittleAndOtherUsersNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		auth := &tokens{users: map[string]string{"token-of-ann": "ann", "token-of-bob": "bob"}}
		var log bytes.Buffer
		g := newGuard(Access{Authenticator: auth}, func(*http.Request) bool { return false },
			http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
		g.failures.log = slog.New(slog.NewTextHandler(&log, nil))
		if got := send(g, "10.0.0.1", "token-of-ann"); got != http.StatusTeapot {
			t.Fatal(got)
		}
		codes := map[int]int{}
		const flood = 20_000
		for i := range flood {
			codes[send(g, fmt.Sprintf("10.0.%d.1", i%100), fmt.Sprintf("secret-%d", i))]++
		}
		if auth.asked > attemptRate+1 {
			t.Errorf("%d bad tokens were checked", auth.asked)
		}
		if codes[http.StatusUnauthorized]+codes[http.StatusTooManyRequests] != flood {
			t.Errorf("the answers are %v", codes)
		}
		for range 1000 { // a known user, behind an address of the flood
			if got := send(g, "10.0.0.1", "token-of-ann"); got != http.StatusTeapot {
				t.Fatalf("a user that was known before the flood gets %d", got)
			}
		}
		if strings.Contains(log.String(), "secret") || !strings.Contains(log.String(), "the token redacted is not known") {
			t.Errorf("the log has %s", log.String())
		}
		if lines := strings.Count(log.String(), "\n"); lines == 0 || lines > failuresLogged {
			t.Errorf("the log has %d lines", lines)
		}
		refused, unchecked := testutil.ToFloat64(g.failures.counter.WithLabelValues("refused")),
			testutil.ToFloat64(g.failures.counter.WithLabelValues("unchecked"))
		if refused != float64(codes[http.StatusUnauthorized]) || unchecked != float64(codes[http.StatusTooManyRequests]) {
			t.Errorf("%v are counted as refused, %v as not checked, of %v", refused, unchecked, codes)
		}
		time.Sleep(time.Second)
		if got := send(g, "10.0.0.1", "token-of-bob"); got != http.StatusTeapot {
			t.Errorf("a second after the flood a new user gets %d", got)
		}
		auth.set(func() { delete(auth.users, "token-of-ann") })
		before := auth.asked
		for range 1000 {
			send(g, "10.0.0.1", "token-of-ann")
		}
		if n := auth.asked - before; n > unauthenticatedRate+1 {
			t.Errorf("a token that was valid is checked %d times after it was withdrawn", n)
		}
	})
}

func TestAWatchEndsWhenItsCredentialsAreWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		auth := &tokens{users: map[string]string{"one": "ann", "two": "ann", "three": "bob", "four": "carl"}}
		s := &Server{guard: newGuard(Access{Token: "administrator", Authenticator: auth}, nil, nil)}
		open := map[string]*watchRights{}
		for _, token := range []string{"one", "two", "three", "four", "administrator"} {
			r := httptest.NewRequest(http.MethodGet, "http://localhost/fleet/api/v1/pods?watch=true", nil)
			r.Header.Set("Authorization", "Bearer "+token)
			saved := saveCredentials(r)
			var err error
			if saved.user, err = s.guard.check(r); err != nil {
				t.Fatal(err)
			}
			open[token] = s.revocations.add(&watchRights{allowed: func() bool { return true }, credentials: saved})
		}
		ctx, cancel := context.WithCancel(t.Context())
		var following sync.WaitGroup
		following.Go(func() { s.followCredentials(ctx) })
		defer following.Wait()
		defer cancel()
		want := func(after time.Duration, ended ...string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			for token, w := range open {
				if w.ended.Load() != strings.Contains(strings.Join(ended, " "), token) {
					t.Errorf("the watch with token %s has ended: %v", token, w.ended.Load())
				}
				if w.ended.Load() && w.reason() != error(errCredentials) {
					t.Errorf("the watch with token %s has ended because of %v", token, w.reason())
				}
			}
		}
		want(time.Hour)
		auth.set(func() { delete(auth.users, "one"); auth.users["three"] = "mallory" })
		want(2*credentialsEvery, "one", "three")
		s.guard.setToken("another")
		want(2*credentialsEvery, "one", "three", "administrator")
		auth.set(func() { auth.down = true })
		want(uncheckedFor-time.Minute, "one", "three", "administrator")
		auth.set(func() { auth.down = false })
		want(time.Hour, "one", "three", "administrator")
		auth.set(func() { auth.down = true })
		want(uncheckedFor+time.Minute, "one", "two", "three", "four", "administrator")
	})
}

func TestAUserWithManyCredentialsCostsOtherUsersNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		auth := &tokens{users: map[string]string{"token-of-ann": "ann", "token-of-bob": "bob"}}
		const many = 2 * knownCredentials
		for i := range many {
			auth.users[fmt.Sprint("mallory-", i)] = "mallory"
		}
		g := newGuard(Access{Authenticator: auth}, func(*http.Request) bool { return false },
			http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
		send(g, "10.0.0.1", "token-of-ann")
		for i := range many {
			if i%attemptRate == 0 {
				time.Sleep(time.Second)
			}
			send(g, fmt.Sprintf("10.0.1.%d", i%100), fmt.Sprint("mallory-", i))
		}
		for user, token := range map[string]string{"a new user": "token-of-bob", "a known user": "token-of-ann"} {
			if got := send(g, "10.0.0.1", token); got != http.StatusTeapot {
				t.Errorf("%s gets %d", user, got)
			}
		}
		for i := range many { // no valid credentials are left to check
			send(g, fmt.Sprintf("10.0.1.%d", i%100), fmt.Sprint("unknown-", i))
		}
		if got := send(g, "10.0.0.1", "token-of-ann"); got != http.StatusTeapot {
			t.Errorf("a user that was known before gets %d", got)
		}
	})
}

func TestCookiesAndSubprotocolsDoNotMakeATokenAnother(t *testing.T) {
	key := func(name, value string) credentialsKey {
		r := httptest.NewRequest(http.MethodGet, "http://localhost/fleet/api", nil)
		r.Header.Set("Authorization", "Bearer one")
		r.Header.Set(name, value)
		key, ok := credentialsOf(r)
		if !ok {
			t.Errorf("a request with a token and %s: %s has no credentials", name, value)
		}
		return key
	}
	plain := key("Accept", "*/*")
	if key("Cookie", "a=b") != plain || key("Sec-Websocket-Protocol", "x") != plain {
		t.Error("another header makes the same token other credentials")
	}
	if key("Authorization", "Bearer two") == plain {
		t.Error("two tokens are the same credentials")
	}
}

func TestOriginIsNotCheckedWithABearerTokenOfAnyUser(t *testing.T) {
	auth := &tokens{users: map[string]string{"one": "ann"}}
	g := newGuard(Access{Authenticator: auth, Token: "administrator"}, func(*http.Request) bool { return false },
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	for _, token := range []string{"administrator", "one"} {
		r := httptest.NewRequest(http.MethodPost,
			"http://localhost/fleet/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", strings.NewReader("{}"))
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Origin", "http://headlamp.example.com")
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		if w.Code != http.StatusTeapot {
			t.Errorf("the token %s with an Origin: %d %s", token, w.Code, w.Body)
		}
	}
}

func TestCredentialsOfEveryFormOfWatchAreSaved(t *testing.T) {
	for _, query := range []string{"watch=true", "%77atch=true", "watch", "watch=1&limit=5", "limit=5&w%61tch"} {
		r := httptest.NewRequest(http.MethodGet, "http://localhost/fleet/api/v1/pods?"+query, nil)
		if !isWatch(r) {
			t.Errorf("?%s is not a watch", query)
		}
		if saveCredentials(r) == nil {
			t.Errorf("the credentials of a watch with ?%s are not saved", query)
		}
	}
}

// slowTokens needs ten seconds to find out that it cannot check the token "slow".
type slowTokens struct{ *tokens }

func (a slowTokens) Authenticate(r *http.Request) (user.Info, bool, error) {
	if r.Header.Get("Authorization") == "Bearer slow" {
		time.Sleep(10 * time.Second) // of the bubble
		return nil, false, outage{errors.New("no answer")}
	}
	return a.tokens.Authenticate(r)
}

func TestSlowCredentialsOfAUserDoNotDelayThoseOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{guard: newGuard(Access{Authenticator: slowTokens{&tokens{}}}, nil, nil)}
		watch := func(token, cookie, name string) *watchRights {
			r := httptest.NewRequest(http.MethodGet, "http://localhost/fleet/api/v1/pods?watch=true", nil)
			r.Header.Set("Authorization", "Bearer "+token)
			r.Header.Set("Cookie", cookie)
			c := saveCredentials(r)
			c.user = &user.DefaultInfo{Name: name}
			return s.revocations.add(&watchRights{allowed: func() bool { return true }, credentials: c})
		}
		for i := range 1000 {
			watch("slow", fmt.Sprint("x=", i), "mallory")
		}
		var withdrawn []*watchRights
		for i := range 50 {
			withdrawn = append(withdrawn, watch(fmt.Sprint("withdrawn-", i), "", fmt.Sprint("user-", i%10)))
		}
		ctx, cancel := context.WithCancel(t.Context())
		var following sync.WaitGroup
		following.Go(func() { s.followCredentials(ctx) })
		time.Sleep(credentialsEvery + time.Second)
		synctest.Wait()
		for i, w := range withdrawn {
			if !w.ended.Load() {
				t.Errorf("withdrawn token %d still has a watch", i)
			}
		}
		cancel()
		following.Wait()
	})
}
