package identity

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"
)

const (
	// jwtCacheTTL is how long a verified token is accepted without verifying it again, as in kube-apiserver.
	jwtCacheTTL = 10 * time.Second
	// reachTimeout is how long the issuers of a new configuration may take to be reached before it replaces the old one.
	reachTimeout = 5 * time.Second
)

// issuer authenticates the tokens of one OIDC issuer.
type issuer struct {
	config apiserver.JWTAuthenticator
	oidc   oidc.AuthenticatorTokenWithHealthCheck // nil before start
	cached authenticator.Token                    // oidc with a cache
	stop   context.CancelFunc

	reported string // what the log says about the connection; used only by the goroutine of Run
}

// AuthenticateToken verifies a token of the issuer. It is refused as long as the issuer has not been reached.
func (i *issuer) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	if i.oidc == nil {
		return nil, false, fmt.Errorf("%w: tokens of the issuer %q are refused until the authenticator runs", errUnchecked,
			i.config.Issuer.URL)
	}
	if err := i.oidc.HealthCheck(); err != nil {
		return nil, false, fmt.Errorf("%w: tokens of the issuer %q are refused until it can be reached: %w", errUnchecked,
			i.config.Issuer.URL, err)
	}
	resp, ok, err := i.cached.AuthenticateToken(ctx, token)
	if err != nil && strings.HasPrefix(err.Error(), keysNotRead) {
		err = fmt.Errorf("%w: %w", errUnchecked, err)
	}
	return resp, ok, err
}

// keysNotRead begins the error of the OIDC authenticator for a token whose key is not known because the keys of the
// issuer cannot be read now. That error wraps nothing.
const keysNotRead = "oidc: verify token: failed to verify signature: fetching keys "

// start returns a copy that contacts the issuer in the background until ctx or stop ends it.
func (i *issuer) start(ctx context.Context, dial dialFunc) (*issuer, error) {
	client, err := newIssuerClient(&i.config.Issuer, dial)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	auth, err := oidc.New(ctx, oidc.Options{JWTAuthenticator: i.config, Client: client, Compiler: celCompiler(),
		SupportedSigningAlgs: oidc.AllValidSigningAlgorithms()})
	if err != nil {
		stop()
		return nil, fmt.Errorf("the issuer %q: %w", i.config.Issuer.URL, err)
	}
	return &issuer{config: i.config, oidc: auth, cached: cache.New(auth, false, jwtCacheTTL, 0), stop: stop}, nil
}

// issuerSet has the issuers of one configuration by URL. It is not changed after it was made.
type issuerSet struct {
	byURL map[string]*issuer
}

// next returns the set of a new configuration. It takes over the issuers that are the same.
func (s *issuerSet) next(configs []apiserver.JWTAuthenticator) *issuerSet {
	next := &issuerSet{byURL: map[string]*issuer{}}
	for _, config := range configs {
		if same := s.byURL[config.Issuer.URL]; same != nil && reflect.DeepEqual(same.config, config) {
			next.byURL[config.Issuer.URL] = same
			continue
		}
		next.byURL[config.Issuer.URL] = &issuer{config: config}
	}
	return next
}

// start returns a copy of the set in which every issuer is started.
func (s *issuerSet) start(ctx context.Context, dial dialFunc) (*issuerSet, error) {
	all := &issuerSet{byURL: map[string]*issuer{}}
	for url, one := range s.byURL {
		if one.oidc == nil {
			started, err := one.start(ctx, dial)
			if err != nil {
				all.stopExcept(s)
				return nil, err
			}
			one = started
		}
		all.byURL[url] = one
	}
	return all, nil
}

// stopExcept stops the issuers that are not in another set.
func (s *issuerSet) stopExcept(other *issuerSet) {
	for url, one := range s.byURL {
		if one.stop != nil && other.byURL[url] != one {
			one.stop()
		}
	}
}

// await waits until every issuer has been reached, for a bounded time.
func (s *issuerSet) await(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for _, one := range s.byURL {
		for one.oidc.HealthCheck() != nil {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}
}

// report logs which issuers cannot be reached, once for each reason, and that they were reached.
func (s *issuerSet) report(log *slog.Logger) {
	for _, url := range slices.Sorted(maps.Keys(s.byURL)) {
		one := s.byURL[url]
		state := "reached"
		if err := one.oidc.HealthCheck(); err != nil {
			state = clip(err.Error())
		}
		switch {
		case state == one.reported:
		case state == "reached":
			log.Info("the issuer was reached; its tokens are accepted", "issuer", url)
		default:
			log.Warn("the issuer cannot be reached; its tokens are refused until it can", "issuer", url, "error", state)
		}
		one.reported = state
	}
}

// clip bounds a text that can contain what an issuer answered.
func clip(text string) string {
	const most = 500
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// of returns the issuer that a token says it is from, or nil. The token is not verified.
func (s *issuerSet) of(token string) *issuer {
	if len(s.byURL) == 0 {
		return nil
	}
	url, err := unverifiedIssuer(token)
	if err != nil {
		return nil
	}
	return s.byURL[url]
}

// unverifiedIssuer returns the claim "iss" of a JSON Web Token.
func unverifiedIssuer(token string) (string, error) {
	_, rest, _ := strings.Cut(token, ".")
	payload, signature, found := strings.Cut(rest, ".")
	if !found || strings.Contains(signature, ".") {
		return "", errors.New("it is not a JSON Web Token")
	}
	text, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return "", err
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	if err := json.Unmarshal(text, &claims); err != nil {
		return "", err
	}
	if claims.Issuer == "accounts.google.com" { // what Google's tokens once said
		return "https://accounts.google.com", nil
	}
	return claims.Issuer, nil
}
