package identity

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/lru"
)

const (
	// reviewTTL is how long the result of a review is used, positive or negative.
	reviewTTL     = 10 * time.Second
	reviewTimeout = 5 * time.Second
	// Reviews of tokens that the cluster has accepted before are limited separately, so that a flood of invalid tokens
	// does not lock their users out. The limits also bound the number of results in the cache.
	newPerSecond, newBurst     = 10, 20
	knownPerSecond, knownBurst = 100, 200
	knownTokens                = 10_000
)

// reviewer authenticates tokens with reviews of a cluster.
type reviewer struct {
	TokenReview
	accepted             *lru.Cache // of the hashes of tokens
	newLimit, knownLimit *rate.Limiter
}

// newReviewer returns an authenticator with a cache, or nil if no cluster is asked.
func newReviewer(t TokenReview) authenticator.Token {
	if t.Review == nil {
		return nil
	}
	return cache.New(&reviewer{TokenReview: t, accepted: lru.New(knownTokens),
		newLimit:   rate.NewLimiter(newPerSecond, newBurst),
		knownLimit: rate.NewLimiter(knownPerSecond, knownBurst)}, false, reviewTTL, reviewTTL)
}

// AuthenticateToken asks the cluster. An error is not cached.
func (r *reviewer) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	sum := sha256.Sum256([]byte(token))
	limit := r.newLimit
	if _, known := r.accepted.Get(sum); known {
		limit = r.knownLimit
	}
	if !limit.Allow() {
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
	r.accepted.Add(sum, nil)
	found := &user.DefaultInfo{Name: status.User.Username, UID: status.User.UID, Groups: status.User.Groups,
		Extra: map[string][]string{}}
	for key, values := range status.User.Extra {
		found.Extra[key] = values
	}
	found.Extra[ClusterExtra] = []string{r.Cluster}
	return &authenticator.Response{User: found}, true, nil
}
