package identity

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/lru"

	"github.com/mirador-k8s/mirador/daemon/ratelimit"
)

const (
	// reviewTTL is how long the result of a review is used, positive or negative.
	reviewTTL     = 10 * time.Second
	reviewTimeout = 5 * time.Second
	// Reviews of tokens that the cluster has not accepted before are limited in total and for each address, where those
	// of valid tokens do not count: a flood of invalid tokens does not lock new users out, unless it comes from many
	// addresses or from theirs. Reviews of other tokens are limited separately. The limits also bound the number of
	// results in the cache.
	newPerSecond, newBurst              = 50, 100
	newOfAddressPerSecond, addressBurst = 5, 10
	knownPerSecond, knownBurst          = 100, 200
	knownTokens                         = 10_000
)

// reviewer authenticates tokens with reviews of a cluster.
type reviewer struct {
	TokenReview
	results              authenticator.Token // of review, for a while
	accepted             *lru.Cache          // of the hashes of tokens
	newLimit, knownLimit *rate.Limiter
	addresses            *ratelimit.Table // of tokens that were not accepted

	mu     sync.Mutex
	asking map[tokenHash]*asking // the tokens that requests wait for
}

type tokenHash [sha256.Size]byte

// asking is the requests with one token that wait for its review.
type asking struct {
	address  string // of the first one, which the review is charged to
	requests int
}

// newReviewer returns an authenticator with a cache, or nil if no cluster is asked.
func newReviewer(t TokenReview) authenticator.Token {
	if t.Review == nil {
		return nil
	}
	r := &reviewer{TokenReview: t, accepted: lru.New(knownTokens),
		newLimit:   rate.NewLimiter(newPerSecond, newBurst),
		knownLimit: rate.NewLimiter(knownPerSecond, knownBurst),
		addresses:  ratelimit.NewTable(newOfAddressPerSecond, addressBurst), asking: map[tokenHash]*asking{}}
	r.results = cache.New(authenticator.TokenFunc(r.review), false, reviewTTL, reviewTTL)
	return r
}

type addressKey struct{}

// withAddress passes the address of each request to the authenticators of its tokens.
func withAddress(next authenticator.Request) authenticator.Request {
	return authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		return next.AuthenticateRequest(r.WithContext(context.WithValue(r.Context(), addressKey{}, ratelimit.Address(r))))
	})
}

// AuthenticateToken returns the result of the last review of a token, or asks the cluster.
func (r *reviewer) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	sum := tokenHash(sha256.Sum256([]byte(token)))
	address, _ := ctx.Value(addressKey{}).(string)
	defer r.ask(sum, address)() // the context of the cache's calls has no values
	return r.results.AuthenticateToken(ctx, token)
}

// ask notes that a request waits for the review of a token, until leave is called.
func (r *reviewer) ask(sum tokenHash, address string) (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.asking[sum]
	if a == nil {
		a = &asking{address: address}
		r.asking[sum] = a
	}
	a.requests++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if a.requests--; a.requests == 0 {
			delete(r.asking, sum)
		}
	}
}

// addressOf returns the address that the review of a token is charged to.
func (r *reviewer) addressOf(sum tokenHash) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.asking[sum]; a != nil {
		return a.address
	}
	return "" // the request has been canceled
}

// review asks the cluster. An error is not cached.
func (r *reviewer) review(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	sum := tokenHash(sha256.Sum256([]byte(token)))
	_, known := r.accepted.Get(sum)
	address := r.addressOf(sum)
	switch {
	case known && r.knownLimit.Allow():
	case !known && r.addresses.Take(address, time.Now()) && r.newLimit.Allow():
	default:
		return nil, false, fmt.Errorf("%w: too many tokens are reviewed at the moment; send the request again in a second",
			errUnchecked)
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	status, err := r.Review(ctx, authenticationv1.TokenReviewSpec{Token: token, Audiences: r.Audiences})
	if err != nil {
		return nil, false, fmt.Errorf("%w: review a token at the cluster %q: %w", errUnchecked, r.Cluster, err)
	}
	meant := len(r.Audiences) == 0 || slices.ContainsFunc(status.Audiences, func(audience string) bool {
		return slices.Contains(r.Audiences, audience)
	})
	if !status.Authenticated || !meant {
		return nil, false, nil
	}
	if !known {
		r.addresses.GiveBack(address)
	}
	r.accepted.Add(sum, nil)
	found := &user.DefaultInfo{Name: status.User.Username, UID: status.User.UID, Groups: status.User.Groups,
		Extra: map[string][]string{}}
	for key, values := range status.User.Extra {
		found.Extra[key] = values
	}
	found.Extra[ClusterExtra] = []string{r.Cluster}
	return &authenticator.Response{User: found}, true, nil
}
