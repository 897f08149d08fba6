package login

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"

	"github.com/mirador-k8s/mirador/daemon/identity"
)

const (
	// discoveryAge is how long a discovery document is used, and discoveryRetry how long a failure is.
	discoveryAge   = 5 * time.Minute
	discoveryRetry = 3 * time.Second
)

// provider is what the discovery document of an issuer says.
type provider struct {
	Issuer        string   `json:"issuer"`
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	EndSession    string   `json:"end_session_endpoint"`
	Scopes        []string `json:"scopes_supported"`
	Challenges    []string `json:"code_challenge_methods_supported"`
	AuthMethods   []string `json:"token_endpoint_auth_methods_supported"`
}

// providerCache has the last discovery document.
type providerCache struct {
	turn chan struct{} // held by the request that reads the document
	last atomic.Pointer[discovered]
}

type discovered struct {
	url      string // of the issuer
	provider *provider
	err      error
	until    time.Time
}

// endSession returns the page of the issuer at which users log out, if it is known.
func (c *providerCache) endSession() string {
	if d := c.last.Load(); d != nil && d.provider != nil {
		return d.provider.EndSession
	}
	return ""
}

// get returns what the discovery document of an issuer says.
func (c *providerCache) get(ctx context.Context, issuer *identity.Issuer) (*provider, error) {
	fresh := func() *discovered {
		if d := c.last.Load(); d != nil && d.url == issuer.URL && time.Now().Before(d.until) {
			return d
		}
		return nil
	}
	if d := fresh(); d != nil {
		return d.provider, d.err
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if d := fresh(); d != nil {
		return d.provider, d.err
	}
	p, err := discover(context.WithoutCancel(ctx), issuer) // the result is for all that wait
	d := &discovered{url: issuer.URL, provider: p, err: err, until: time.Now().Add(discoveryAge)}
	if err != nil {
		d.until = time.Now().Add(discoveryRetry)
	}
	c.last.Store(d)
	return p, err
}

// discover reads the discovery document of an issuer.
func discover(ctx context.Context, issuer *identity.Issuer) (*provider, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, issuer.DiscoveryURL, nil)
	if err != nil {
		return nil, err
	}
	resp, err := issuer.Client.Do(r)
	if err != nil {
		return nil, unreachable(issuer, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body) // the client bounds it
	if err != nil {
		return nil, unreachable(issuer, err)
	}
	var p provider
	if resp.StatusCode != http.StatusOK || json.Unmarshal(body, &p) != nil {
		return nil, problemf("The discovery document of %s cannot be read (%s). Check the issuer.", nameOf(issuer),
			resp.Status)
	}
	switch {
	case p.Issuer != issuer.URL:
		return nil, problemf("The discovery document of %s is that of another issuer. Check the issuer.", nameOf(issuer))
	case !isHTTPS(p.Authorization) || !isHTTPS(p.Token):
		return nil, problemf("The discovery document of %s has no endpoints for logins with https. Check the issuer.",
			nameOf(issuer))
	case p.Challenges != nil && !slices.Contains(p.Challenges, "S256"):
		return nil, problemf("%s does not support PKCE with S256, which logins need. Allow it at the issuer.", nameOf(issuer))
	}
	if !isHTTPS(p.EndSession) {
		p.EndSession = ""
	}
	return &p, nil
}

func isHTTPS(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https" && u.Host != ""
}

// nameOf returns the name of an issuer for errors.
func nameOf(issuer *identity.Issuer) string {
	if u, err := url.Parse(issuer.URL); err == nil && u.Host != "" {
		return u.Host
	}
	return issuer.URL
}

func unreachable(issuer *identity.Issuer, err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // without the URL
	}
	return problemf("%s cannot be reached: %v. Try again later.", nameOf(issuer), err)
}

// client returns what talks to the issuer, and a context for it.
func (l *Login) client(ctx context.Context) (context.Context, *oauth2.Config, *identity.Issuer, error) {
	issuer, err := l.opts.Users.Issuer(l.opts.Issuer)
	if err != nil {
		return nil, nil, nil, err
	}
	p, err := l.provider.get(ctx, issuer)
	if err != nil {
		return nil, nil, nil, err
	}
	secret, err := l.secret()
	if err != nil {
		return nil, nil, nil, err
	}
	style := oauth2.AuthStyleInParams
	if secret != "" && (p.AuthMethods == nil || slices.Contains(p.AuthMethods, "client_secret_basic")) {
		style = oauth2.AuthStyleInHeader
	}
	return context.WithValue(ctx, oauth2.HTTPClient, issuer.Client), &oauth2.Config{ClientID: l.opts.ClientID,
		ClientSecret: secret, RedirectURL: l.redirectURI(), Scopes: l.scopes(p),
		Endpoint: oauth2.Endpoint{AuthURL: p.Authorization, TokenURL: p.Token, AuthStyle: style}}, issuer, nil
}

// scopes returns the scopes of a login.
func (l *Login) scopes(p *provider) []string {
	scopes := []string{"openid"}
	if l.opts.Scopes != nil {
		return append(scopes, slices.DeleteFunc(slices.Clone(l.opts.Scopes),
			func(s string) bool { return s == "openid" })...)
	}
	for _, s := range []string{"profile", "email", "groups", "offline_access"} {
		if slices.Contains(p.Scopes, s) {
			scopes = append(scopes, s)
		}
	}
	return scopes
}

// refusedError says that the issuer has refused a code or a refresh token.
type refusedError struct{ text string }

// Error returns the text.
func (e *refusedError) Error() string { return e.text }

func isRefused(err error) bool {
	_, ok := errors.AsType[*refusedError](err)
	return ok
}

// tokenError returns the error of a request to the token endpoint, without anything that was sent.
func tokenError(issuer *identity.Issuer, err error) error {
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		return unreachable(issuer, err)
	}
	why := strings.Join(slices.DeleteFunc([]string{refused.ErrorCode, clip(refused.ErrorDescription, maxProblem/2)},
		func(s string) bool { return s == "" }), ": ")
	switch {
	case refused.ErrorCode == "" || refused.Response.StatusCode >= http.StatusInternalServerError:
		return problemf("%s answered %s. Try again later.", nameOf(issuer), refused.Response.Status)
	case refused.ErrorCode == "invalid_client" || refused.ErrorCode == "unauthorized_client":
		return &refusedError{fmt.Sprintf("%s does not accept the daemon as a client (%s). Check --login-client-id and "+
			"--login-client-secret-file.", nameOf(issuer), why)}
	}
	return &refusedError{fmt.Sprintf("%s has refused the login (%s). Log in again.", nameOf(issuer), why)}
}
