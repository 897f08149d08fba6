package identity

import (
	"crypto"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// oidcFixture has an Authenticator with one issuer that is reachable.
func oidcFixture(t *testing.T, mapping string) (*Authenticator, *issuerServer, *network) {
	t.Helper()
	var n network
	one := newIssuer(t, "one.example.com", map[string]crypto.Signer{"r": rsaKey(), "e": newECKey(t)})
	one.serve(t, n.listen("one.example.com:443"))
	a, err := newAuthenticator(Options{Token: "the-admin-token-of-this-test",
		AuthenticationConfig: write(t, "config.yaml", configuration(one.entry(mapping)))}, n.dial)
	check(t, err)
	run(t, a)
	return a, one, &n
}

func TestTokensOfAnIssuerAreVerified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, one, _ := oidcFixture(t, plainMapping)
		now := time.Now()
		groups := map[string]any{"groups": []string{"dev", "ops"}}
		wantUser(t, a, bearer(one.token(t, "r", groups)), `oidc:alice "" [oidc:dev oidc:ops system:authenticated]`)
		wantUser(t, a, bearer(one.token(t, "e", nil)), `oidc:alice "" [system:authenticated]`)

		other := newECKey(t)
		valid := one.token(t, "e", nil)
		claims := map[string]any{"iss": one.url, "aud": "mirador", "sub": "alice", "exp": now.Add(time.Hour).Unix()}
		refused := func(reason, token string) { t.Helper(); wantRefused(t, a, bearer(token), reason) }
		refused("token is expired", one.token(t, "r", map[string]any{"exp": now.Add(-time.Minute).Unix()}))
		refused("before the nbf", one.token(t, "r", map[string]any{"nbf": now.Add(time.Hour).Unix()}))
		refused("audience", one.token(t, "r", map[string]any{"aud": "another"}))
		refused("audience", one.token(t, "r", map[string]any{"aud": []string{}}))
		refused("invalid bearer token", one.token(t, "r", map[string]any{"iss": "https://evil.example.com"}))
		refused("invalid bearer token", one.token(t, "r", map[string]any{"iss": ""}))
		refused("cannot unmarshal number", one.token(t, "r", map[string]any{"sub": 7}))
		refused("verify token", signToken(t, "r", nil, claims)) // algorithm none
		refused("failed to verify id token signature", signToken(t, "e", other, claims))
		refused("signature", replaceClaims(valid, one.token(t, "e", map[string]any{"sub": "root"})))
		refused("verify token", valid[:strings.LastIndex(valid, ".")+1])
	})
}

// replaceClaims returns a token with the claims of another one.
func replaceClaims(token, other string) string {
	parts, from := strings.Split(token, "."), strings.Split(other, ".")
	return parts[0] + "." + from[1] + "." + parts[2]
}

func TestARotatedKeyIsFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, one, _ := oidcFixture(t, plainMapping)
		const alice = `oidc:alice "" [system:authenticated]`
		old := one.token(t, "e", nil)
		wantUser(t, a, bearer(old), alice)
		one.setKeys(map[string]crypto.Signer{"new": newECKey(t)})
		wantUser(t, a, bearer(one.token(t, "new", nil)), alice)
		wantUser(t, a, bearer(old), alice) // verified less than jwtCacheTTL ago
		time.Sleep(jwtCacheTTL)
		wantRefused(t, a, bearer(old), "signature")
	})
}

// A client without a valid token can cause few requests to the issuer, and none with a token that is not the issuer's.
func TestInvalidTokensCauseFewRequestsToTheIssuer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, one, n := oidcFixture(t, plainMapping)
		wantUser(t, a, bearer(one.token(t, "r", nil)), `oidc:alice "" [system:authenticated]`)
		discoveries, before := one.counts()
		for range 100 {
			wantRefused(t, a, bearer("not-a-token"), "invalid bearer token")
			wantRefused(t, a, bearer("e30.e30.e30"), "invalid bearer token")
			wantRefused(t, a, bearer(one.token(t, "r", map[string]any{"iss": "https://evil.example.com"})), "invalid")
			wantRefused(t, a, bearer(one.token(t, "r", map[string]any{"aud": "x"})), "audience")
		}
		if again, after := one.counts(); after != before || again != discoveries {
			t.Errorf("tokens that are not the issuer's caused %d requests", after-before+again-discoveries)
		}
		forged := newECKey(t)
		for range 100 {
			wantRefused(t, a, bearer(signToken(t, "unknown", forged, map[string]any{"iss": one.url, "aud": "mirador",
				"sub": "alice", "exp": time.Now().Add(time.Hour).Unix()})), "verify token")
		}
		if _, after := one.counts(); after-before > keysBurst {
			t.Errorf("100 tokens with an unknown key caused %d requests; want at most %d", after-before, keysBurst)
		}
		for address := range n.dials {
			if address != "one.example.com:443" {
				t.Errorf("%s was contacted", address)
			}
		}
		// Keys that are known stay usable, and new ones are fetched again after a second.
		wantUser(t, a, bearer(one.token(t, "e", nil)), `oidc:alice "" [system:authenticated]`)
		one.setKeys(map[string]crypto.Signer{"new": newECKey(t)})
		time.Sleep(time.Second)
		wantUser(t, a, bearer(one.token(t, "new", nil)), `oidc:alice "" [system:authenticated]`)
	})
}
