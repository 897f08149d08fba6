package login

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/identity"
)

// begin begins a login and returns the URL of the issuer to which the browser is sent.
func (l *Login) begin(w http.ResponseWriter, r *http.Request) (string, error) {
	_, client, _, err := l.client(r.Context())
	if err != nil {
		return "", err
	}
	// Logins in several tabs of a browser have the same cookie.
	browser := l.cookie(r, browserCookie)
	if len(browser) != len(randomText()) {
		browser = randomText()
	}
	p := l.pending.begin(browser, time.Now())
	// The issuer sends the browser back from another site, so the cookie cannot be a strict one.
	l.setCookie(w, browserCookie, browser, http.SameSiteLaxMode, pendingAge)
	return client.AuthCodeURL(p.state, oauth2.S256ChallengeOption(p.verifier),
		oauth2.SetAuthURLParam("nonce", p.nonce)), nil
}

// complete completes a login: it exchanges the code of the issuer for tokens and starts a session.
func (l *Login) complete(w http.ResponseWriter, r *http.Request) error {
	leave, err := l.exchanges.enter(r)
	if err != nil {
		return err // the login is still pending, so the browser can try again
	}
	defer leave()
	q := r.URL.Query()
	p := l.pending.take(q.Get("state"), l.cookie(r, browserCookie), time.Now())
	if p == nil {
		return problemf("This login was not begun in this browser, or is over. Open %s and log in again.", l.page)
	}
	issuer, err := l.opts.Users.Issuer(l.opts.Issuer)
	if err != nil {
		return err
	}
	if code := q.Get("error"); code != "" {
		why := strings.TrimSuffix(clip(code, 100)+": "+clip(q.Get("error_description"), maxProblem/2), ": ")
		return problemf("%s has refused the login (%s). Log in again, or ask its administrator.", nameOf(issuer), why)
	}
	if named := q.Get("iss"); named != "" && named != issuer.URL {
		return problemf("The answer is of another issuer than %s. Log in again.", nameOf(issuer))
	}
	ctx, client, issuer, err := l.client(r.Context())
	if err != nil {
		return err
	}
	answer, err := client.Exchange(ctx, q.Get("code"), oauth2.VerifierOption(p.verifier))
	if err != nil {
		return tokenError(issuer, err)
	}
	got, err := l.verify(ctx, issuer, answer)
	if err != nil {
		return err
	}
	if subtle.ConstantTimeCompare([]byte(got.nonce), []byte(p.nonce)) != 1 {
		return problemf("The token of %s is not one of this login. Log in again.", nameOf(issuer))
	}
	l.sessions.remove(l.cookie(r, sessionCookie))
	id := l.sessions.add(&session{user: got.user.GetName(), subject: got.subject, began: time.Now(),
		idToken: got.idToken, expires: got.expires, refresh: got.refresh})
	l.setCookie(w, sessionCookie, id, http.SameSiteStrictMode, 0)
	return nil
}

// refresh returns new tokens for a refresh token. They must be those of the same subject. If the new ID token cannot be
// verified now, it returns an error and only a new refresh token: the issuer may not accept the old one again.
func (l *Login) refresh(ctx context.Context, token, subject string) (*tokens, error) {
	ctx, client, issuer, err := l.client(ctx)
	if err != nil {
		return nil, err
	}
	answer, err := client.TokenSource(ctx, &oauth2.Token{RefreshToken: token}).Token()
	if err != nil {
		return nil, tokenError(issuer, err)
	}
	got, err := l.verify(ctx, issuer, answer)
	if isTemporary(err) {
		return &tokens{refresh: answer.RefreshToken}, err
	}
	if err != nil {
		return nil, &refusedError{err.Error()}
	}
	if got.subject != subject {
		return nil, &refusedError{fmt.Sprintf("The new token of %s is that of another user. Log in again.", nameOf(issuer))}
	}
	return got, nil
}

// tokens are what the issuer gives.
type tokens struct {
	user             user.Info
	idToken, refresh string
	subject, nonce   string
	expires          time.Time
}

// verify verifies the ID token in an answer of the token endpoint, as that of a request would be, and reads its claims.
func (l *Login) verify(ctx context.Context, issuer *identity.Issuer, answer *oauth2.Token) (*tokens, error) {
	idToken, _ := answer.Extra("id_token").(string)
	if idToken == "" {
		return nil, problemf("%s has given no ID token. Log in again; if that does not help, allow the scope openid there.",
			nameOf(issuer))
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.page.String(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+idToken)
	u, ok, err := l.opts.Users.Authenticate(r)
	if isTemporary(err) {
		return nil, &uncheckedError{fmt.Sprintf("The token of %s cannot be verified at the moment: %v. Try again later.",
			nameOf(issuer), err)}
	}
	if err != nil || !ok {
		if err == nil {
			err = errors.New("it is not a token of this issuer")
		}
		return nil, problemf("The token of %s is refused: %v. Ask the administrator of the daemon.", nameOf(issuer), err)
	}
	claims, err := claimsOf(idToken)
	if err != nil {
		return nil, problemf("The token of %s cannot be read. Ask the administrator of the daemon.", nameOf(issuer))
	}
	if claims.Issuer != issuer.URL || !slices.Contains(claims.Audience, l.opts.ClientID) ||
		claims.Party != "" && claims.Party != l.opts.ClientID {
		return nil, problemf("The token of %s is for another client. Log in again.", nameOf(issuer))
	}
	return &tokens{user: u, idToken: idToken, refresh: answer.RefreshToken, subject: claims.Subject, nonce: claims.Nonce,
		expires: time.Unix(int64(claims.Expires), 0)}, nil
}

// uncheckedError says that a token could not be verified now, and may be valid.
type uncheckedError struct{ text string }

// Error returns the text.
func (e *uncheckedError) Error() string { return e.text }

// Temporary reports that the token may be valid.
func (e *uncheckedError) Temporary() bool { return true }

// isTemporary reports whether an error says that a token could not be verified now.
func isTemporary(err error) bool {
	var temporary interface{ Temporary() bool }
	return errors.As(err, &temporary) && temporary.Temporary()
}

// claims are the claims of an ID token that a client has to check.
type claims struct {
	Issuer   string   `json:"iss"`
	Subject  string   `json:"sub"`
	Audience audience `json:"aud"`
	Party    string   `json:"azp"`
	Nonce    string   `json:"nonce"`
	Expires  float64  `json:"exp"`
}

// audience is a text or a list of texts.
type audience []string

// UnmarshalJSON reads both forms.
func (a *audience) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*a = audience{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(a))
}

// claimsOf reads the claims of a token that was verified.
func claimsOf(token string) (*claims, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, errors.New("it is not a JSON Web Token")
	}
	b, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return nil, err
	}
	var c claims
	return &c, json.Unmarshal(b, &c)
}
