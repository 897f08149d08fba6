package testissuer

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Logins says how the issuer logs users in.
type Logins struct {
	ClientID     string
	ClientSecret string // "" for a public client
	RedirectURI  string
	KeyID        string         // of the key that signs ID tokens
	Claims       map[string]any // of the user that logs in; "sub" is required
	Lifetime     time.Duration  // of ID tokens
	Refresh      bool           // issues refresh tokens
	Deny         string         // the description of the error with which every login is refused; "" refuses none
	Ask          bool           // shows a page with a button before it redirects
	// Document has changed and added fields of the discovery document.
	Document map[string]any
}

// grant is what an authorization code or a refresh token stands for.
type grant struct {
	nonce, challenge string
	claims           map[string]any
}

// SetLogins changes how users are logged in.
func (i *Issuer) SetLogins(l Logins) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.logins = l
}

// Exchanges returns how many requests the token endpoint has had.
func (i *Issuer) Exchanges() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.exchanges
}

var askPage = template.Must(template.New("").Parse(`<!doctype html><title>The issuer</title>
<link rel="icon" href="data:,">
<h1>The issuer</h1><p><a id="continue" href="{{.}}">Continue</a></p>`))

// authorize is the authorization endpoint.
func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	switch {
	case q.Get("client_id") != i.logins.ClientID:
		http.Error(w, "unknown client", http.StatusBadRequest)
		return
	case q.Get("redirect_uri") != i.logins.RedirectURI:
		http.Error(w, "unknown redirect URI", http.StatusBadRequest)
		return
	case q.Get("response_type") != "code", q.Get("code_challenge_method") != "S256", len(q.Get("code_challenge")) != 43,
		q.Get("state") == "", q.Get("nonce") == "", !slices.Contains(strings.Fields(q.Get("scope")), "openid"):
		http.Error(w, "invalid request", http.StatusBadRequest)
		return
	}
	back := url.Values{"state": {q.Get("state")}}
	if i.logins.Deny != "" {
		back.Set("error", "access_denied")
		back.Set("error_description", i.logins.Deny)
	} else {
		code := rand.Text()
		i.codes[code] = &grant{nonce: q.Get("nonce"), challenge: q.Get("code_challenge"), claims: i.logins.Claims}
		back.Set("code", code)
	}
	target := i.logins.RedirectURI + "?" + back.Encode()
	if i.logins.Ask {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = askPage.Execute(w, target) // an error means that the client is gone
		return
	}
	http.Redirect(w, r, target, http.StatusFound)
}

// token is the token endpoint.
func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	refuse := func(code, why string) {
		reply(w, http.StatusBadRequest, map[string]string{"error": code, "error_description": why})
	}
	if err := r.ParseForm(); err != nil || r.Method != http.MethodPost || len(r.URL.Query()) > 0 {
		refuse("invalid_request", "send a form")
		return
	}
	id, secret, ok := r.BasicAuth()
	if !ok {
		id, secret = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	}
	if id != i.logins.ClientID || secret != i.logins.ClientSecret {
		refuse("invalid_client", "the client or its secret is wrong")
		return
	}
	var g *grant
	switch r.PostForm.Get("grant_type") {
	case "authorization_code":
		code := r.PostForm.Get("code")
		g = i.codes[code]
		delete(i.codes, code)
		sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
		if g == nil || g.challenge != base64.RawURLEncoding.EncodeToString(sum[:]) ||
			r.PostForm.Get("redirect_uri") != i.logins.RedirectURI {
			refuse("invalid_grant", "the code, its verifier or the redirect URI is wrong")
			return
		}
	case "refresh_token":
		token := r.PostForm.Get("refresh_token")
		g = i.refreshes[token]
		delete(i.refreshes, token)
		if g == nil || !i.logins.Refresh {
			refuse("invalid_grant", "the refresh token is unknown")
			return
		}
	default:
		refuse("unsupported_grant_type", "")
		return
	}
	now := time.Now()
	claims := map[string]any{"iss": i.URL, "aud": i.logins.ClientID, "iat": now.Unix(),
		"exp": now.Add(i.logins.Lifetime).Unix(), "nonce": g.nonce}
	maps.Copy(claims, g.claims)
	answer := map[string]any{"access_token": rand.Text(), "token_type": "Bearer",
		"expires_in": int(i.logins.Lifetime.Seconds()),
		"id_token":   SignToken(i.logins.KeyID, i.keys[i.logins.KeyID], claims)}
	if i.logins.Refresh {
		token := rand.Text()
		i.refreshes[token] = g
		answer["refresh_token"] = token
	}
	reply(w, http.StatusOK, answer)
}

// RevokeRefreshTokens makes every refresh token invalid, as an administrator of the issuer can.
func (i *Issuer) RevokeRefreshTokens() {
	i.mu.Lock()
	defer i.mu.Unlock()
	clear(i.refreshes)
}
