package identity

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/mirador-k8s/mirador/dev/testissuer"
)

// reviewCluster answers TokenReviews and counts them.
type reviewCluster struct {
	mu        sync.Mutex
	reviews   int
	audiences []string
	users     map[string]authenticationv1.UserInfo
	down      bool
}

func (c *reviewCluster) review(_ context.Context, spec authenticationv1.TokenReviewSpec) (
	authenticationv1.TokenReviewStatus, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reviews++
	if c.down {
		return authenticationv1.TokenReviewStatus{}, errors.New("connection refused")
	}
	u, ok := c.users[spec.Token]
	status := authenticationv1.TokenReviewStatus{Authenticated: ok, User: u, Audiences: c.audiences}
	if !ok {
		status.Error = "invalid bearer token"
	}
	return status, nil
}

func (c *reviewCluster) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reviews
}

func newReviewCluster() *reviewCluster {
	return &reviewCluster{users: map[string]authenticationv1.UserInfo{
		"robot": {Username: "system:serviceaccount:ci:robot", UID: "u1", Groups: []string{"system:serviceaccounts"},
			Extra: map[string]authenticationv1.ExtraValue{"example.com/pod": {"p"}}},
		"evil":   {Username: "mirador:admin"},
		"evil2":  {Username: "eve", Groups: []string{"mirador:administrators"}},
		"noname": {},
	}}
}

const robot = `system:serviceaccount:ci:robot "u1" [system:serviceaccounts system:authenticated] ` +
	`map[example.com/pod:[p] mirador.dev/cluster:[eu]]`

func TestAResultOfAReviewIsUsedForSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newReviewCluster()
		a, err := New(Options{TokenReview: TokenReview{Cluster: "eu", Review: c.review}})
		check(t, err)
		wantCount := func(want int) {
			t.Helper()
			if got := c.count(); got != want {
				t.Errorf("the cluster had %d reviews; want %d", got, want)
			}
		}
		for range 10 {
			wantUser(t, a, bearer("robot"), robot)
		}
		wantCount(1)
		for range 10 {
			wantRefused(t, a, bearer("unknown"), "invalid bearer token")
		}
		wantCount(2)
		time.Sleep(reviewTTL)
		wantUser(t, a, bearer("robot"), robot)
		wantRefused(t, a, bearer("unknown"), "invalid bearer token")
		wantCount(4)

		wantRefused(t, a, bearer("evil"), "reserved")
		wantRefused(t, a, bearer("evil2"), "reserved")
		wantRefused(t, a, bearer("noname"), "no user name")

		c.down = true
		time.Sleep(reviewTTL)
		before := c.count()
		wantRefused(t, a, bearer("robot"), `review a token at the cluster "eu": connection refused`)
		wantRefused(t, a, bearer("robot"), "connection refused")
		wantCount(before + 2)
		c.down = false
		wantUser(t, a, bearer("robot"), robot)
	})
}

func TestReviewsOfTheSameTokenAtTheSameTimeAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newReviewCluster()
		release := make(chan struct{})
		a, err := New(Options{TokenReview: TokenReview{Cluster: "eu", Review: func(ctx context.Context,
			spec authenticationv1.TokenReviewSpec) (authenticationv1.TokenReviewStatus, error) {
			<-release
			return c.review(ctx, spec)
		}}})
		check(t, err)
		var requests sync.WaitGroup
		for range 10 {
			requests.Go(func() { wantUser(t, a, bearer("robot"), robot) })
		}
		synctest.Wait()
		close(release)
		requests.Wait()
		if got := c.count(); got != 1 {
			t.Errorf("10 requests caused %d reviews; want 1", got)
		}
	})
}

// from returns a request with a token that comes from an address.
func from(address, token string) *http.Request {
	r := bearer(token)
	r.RemoteAddr = address + ":1234"
	return r
}

func TestAFloodOfInvalidTokensCausesFewReviewsAndLocksNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newReviewCluster()
		for i := range 2 * addressBurst {
			c.users[fmt.Sprint("new-", i)] = authenticationv1.UserInfo{Username: "new"}
		}
		a, err := New(Options{TokenReview: TokenReview{Cluster: "eu", Review: c.review}})
		check(t, err)
		flood := func(address string) (reviews int) {
			t.Helper()
			before := c.count()
			for i := range 1000 {
				if _, ok, _ := a.Authenticate(from(address, fmt.Sprint(address, "-garbage-", i))); ok {
					t.Fatal("garbage is a token")
				}
			}
			return c.count() - before
		}
		wantUser(t, a, from("10.0.0.1", "robot"), robot)
		time.Sleep(reviewTTL)
		for _, address := range []string{"10.0.0.1", "10.0.0.2", "[2001:db8::1]"} {
			if n := flood(address); n != addressBurst {
				t.Errorf("1000 invalid tokens of %s caused %d reviews; want %d", address, n, addressBurst)
			}
		}
		if n := flood("[2001:db8::2]"); n != 0 {
			t.Errorf("another address of an IPv6 prefix caused %d reviews", n)
		}
		wantRefused(t, a, from("10.0.0.1", "garbage"), "too many tokens are reviewed")
		wantUser(t, a, from("10.0.0.1", "robot"), robot) // its token was accepted before
		for i := range 2 * addressBurst {
			wantUser(t, a, from("10.0.0.3", fmt.Sprint("new-", i)), `new "" [system:authenticated] map[mirador.dev/cluster:[eu]]`)
		}
		before := c.count()
		for i := range 1000 {
			flooded := from(fmt.Sprintf("10.0.1.%d", i%100), fmt.Sprint("garbage-", i))
			if _, ok, _ := a.Authenticate(flooded); ok {
				t.Fatal("garbage is a token")
			}
		}
		if n := c.count() - before; n > newBurst {
			t.Errorf("1000 invalid tokens of 100 addresses caused %d reviews; want at most %d", n, newBurst)
		}
		wantUser(t, a, from("10.0.0.1", "robot"), robot)
	})
}

// Requests with one new token at the same time are charged as one review, whatever its result.
func TestRequestsWithOneTokenAreChargedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newReviewCluster()
		release := make(chan struct{})
		a, err := New(Options{TokenReview: TokenReview{Cluster: "eu", Review: func(ctx context.Context,
			spec authenticationv1.TokenReviewSpec) (authenticationv1.TokenReviewStatus, error) {
			<-release
			return c.review(ctx, spec)
		}}})
		check(t, err)
		for _, token := range []string{"robot", "garbage"} {
			var requests sync.WaitGroup
			for range 3 * addressBurst {
				requests.Go(func() {
					if _, _, err := a.Authenticate(from("10.0.0.1", token)); err != nil && strings.Contains(err.Error(), "too many") {
						t.Errorf("%s: %v", token, err)
					}
				})
			}
			synctest.Wait()
			release <- struct{}{}
			requests.Wait()
		}
		if got := c.count(); got != 2 {
			t.Errorf("2 tokens caused %d reviews", got)
		}
	})
}

func TestATokenOfAConfiguredIssuerIsNotReviewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newReviewCluster()
		one := testissuer.New(t, "one.example.com", nil)
		a, err := newAuthenticator(Options{TokenReview: TokenReview{Cluster: "eu", Review: c.review},
			AuthenticationConfig: write(t, "config.yaml", testissuer.Configuration(one.Entry(plainMapping)))}, (&network{}).dial)
		check(t, err)
		run(t, a)
		claims := map[string]any{"iss": one.URL, "sub": "x"}
		wantRefused(t, a, bearer(testissuer.SignToken("k", testissuer.NewECKey(t), claims)),
			"refused until it can be reached")
		if got := c.count(); got != 0 {
			t.Errorf("a token of a configured issuer caused %d reviews", got)
		}
		claims["iss"] = "https://kubernetes.default.svc"
		wantRefused(t, a, bearer(testissuer.SignToken("k", testissuer.NewECKey(t), claims)), "invalid bearer token")
		if got := c.count(); got != 1 {
			t.Errorf("a token of another issuer caused %d reviews; want 1", got)
		}
	})
}

func TestAReviewedTokenMustBeMeantForAnAudience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			want, got []string
			accepted  bool
		}{
			{nil, nil, true},
			{nil, []string{"https://kubernetes.default.svc"}, true},
			{[]string{"mirador"}, []string{"mirador"}, true},
			{[]string{"mirador", "x"}, []string{"y", "x"}, true},
			{[]string{"mirador"}, []string{"other"}, false},
			{[]string{"mirador"}, nil, false}, // the cluster does not know audiences
		} {
			cluster := newReviewCluster()
			cluster.audiences = c.got
			a, err := New(Options{TokenReview: TokenReview{Cluster: "eu", Audiences: c.want, Review: cluster.review}})
			check(t, err)
			if _, ok, _ := a.Authenticate(bearer("robot")); ok != c.accepted {
				t.Errorf("with the audiences %v of %v the token is accepted: %t", strings.Join(c.got, " "), c.want, ok)
			}
		}
	})
}
