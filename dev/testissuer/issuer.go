// Package testissuer is an OIDC issuer in memory, for tests: it serves its discovery document and its keys, signs
// tokens, and logs users in by the authorization code flow with PKCE. It is as strict as a real issuer: a code and a
// refresh token can be used once, and the redirect URI and the code verifier must be the right ones.
package testissuer

import (
	"crypto"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Issuer is an OIDC issuer. It is an http.Handler, which the test serves over TLS with a certificate of Authority.
type Issuer struct {
	URL       string
	Authority *Authority
	// Named is the URL in the discovery document, if it is not URL.
	Named string

	mu        sync.Mutex
	keys      map[string]crypto.Signer // by ID
	discovery int                      // requests
	fetches   int                      // of the keys
	logins    Logins
	codes     map[string]*grant
	refreshes map[string]*grant
	exchanges int // requests to the token endpoint
}

// New returns an issuer at a host, with keys by ID.
func New(t testing.TB, host string, keys map[string]crypto.Signer) *Issuer {
	t.Helper()
	return &Issuer{URL: "https://" + host, Authority: NewAuthority(t, "authority of "+host), keys: keys,
		codes: map[string]*grant{}, refreshes: map[string]*grant{}}
}

// ServeHTTP answers a request.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		i.discovery++
		reply(w, http.StatusOK, i.document())
	case "/keys":
		i.fetches++
		var set []map[string]string
		for _, id := range slices.Sorted(maps.Keys(i.keys)) {
			set = append(set, publicKey(id, i.keys[id]))
		}
		reply(w, http.StatusOK, map[string]any{"keys": set})
	case "/authorize":
		i.authorize(w, r)
	case "/token":
		i.exchanges++
		i.token(w, r)
	default:
		http.NotFound(w, r)
	}
}

// document returns the discovery document.
func (i *Issuer) document() map[string]any {
	named := i.URL
	if i.Named != "" {
		named = i.Named
	}
	d := map[string]any{"issuer": named, "jwks_uri": i.URL + "/keys", "authorization_endpoint": i.URL + "/authorize",
		"token_endpoint": i.URL + "/token", "scopes_supported": []string{"openid", "profile", "groups", "offline_access"},
		"code_challenge_methods_supported": []string{"S256"}}
	maps.Copy(d, i.logins.Document)
	return d
}

// Counts returns how often the discovery document and the keys were read.
func (i *Issuer) Counts() (discovery, keys int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.discovery, i.fetches
}

// SetKeys replaces the keys.
func (i *Issuer) SetKeys(keys map[string]crypto.Signer) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = keys
}

// Configuration returns an AuthenticationConfiguration; each issuer is an element of its list jwt.
func Configuration(issuers ...string) string {
	return "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n" + strings.Join(issuers, "")
}

// Entry returns the issuer as an element of jwt, with claimMappings and rules in rest.
func (i *Issuer) Entry(rest string) string {
	text := "- issuer:\n    url: " + i.URL + "\n    audiences: [mirador]\n    certificateAuthority: |\n"
	for line := range strings.Lines(i.Authority.PEM) {
		text += "      " + line
	}
	return text + rest
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // an error means that the client is gone
}
