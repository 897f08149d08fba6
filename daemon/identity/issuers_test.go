package identity

import (
	"crypto"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/dev/testissuer"
)

// oidcFixture has an Authenticator with one issuer that is reachable.
func oidcFixture(t *testing.T, mapping string) (*Authenticator, *testissuer.Issuer, *network) {
	t.Helper()
	var n network
	one := testissuer.New(t, "one.example.com", map[string]crypto.Signer{"r": testissuer.RSAKey(),
		"e": testissuer.NewECKey(t)})
	serve(t, one, n.listen("one.example.com:443"))
	a, err := newAuthenticator(Options{
		AuthenticationConfig: write(t, "config.yaml", testissuer.Configuration(one.Entry(mapping)))}, n.dial)
	check(t, err)
	run(t, a)
	return a, one, &n
}

func TestTokensOfAnIssuerAreVerified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, one, _ := oidcFixture(t, plainMapping)
		now := time.Now()
		groups := map[string]any{"groups": []string{"dev", "ops"}}
		wantUser(t, a, bearer(one.Token("r", groups)), `oidc:alice "" [oidc:dev oidc:ops system:authenticated]`)
		wantUser(t, a, bearer(one.Token("e", nil)), `oidc:alice "" [system:authenticated]`)

		other := testissuer.NewECKey(t)
		valid := one.Token("e", nil)
		claims := map[string]any{"iss": one.URL, "aud": "mirador", "sub": "alice", "exp": now.Add(time.Hour).Unix()}
		refused := func(reason, token string) { t.Helper(); wantRefused(t, a, bearer(token), reason) }
		refused("token is expired", one.Token("r", map[string]any{"exp": now.Add(-time.Minute).Unix()}))
		refused("before the nbf", one.Token("r", map[string]any{"nbf": now.Add(time.Hour).Unix()}))
		refused("audience", one.Token("r", map[string]any{"aud": "another"}))
		refused("audience", one.Token("r", map[string]any{"aud": []string{}}))
		refused("invalid bearer token", one.Token("r", map[string]any{"iss": "https://evil.example.com"}))
		refused("invalid bearer token", one.Token("r", map[string]any{"iss": ""}))
		refused("cannot unmarshal number", one.Token("r", map[string]any{"sub": 7}))
		refused("verify token", testissuer.SignToken("r", nil, claims)) // algorithm none
		refused("failed to verify id token signature", testissuer.SignToken("e", other, claims))
		refused("signature", replaceClaims(valid, one.Token("e", map[string]any{"sub": "root"})))
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
		old := one.Token("e", nil)
		wantUser(t, a, bearer(old), alice)
		synctest.Wait() // a fetch of the keys that has answered ends a little later, and until then others get its answer
		one.SetKeys(map[string]crypto.Signer{"new": testissuer.NewECKey(t)})
		wantUser(t, a, bearer(one.Token("new", nil)), alice)
		wantUser(t, a, bearer(old), alice) // verified less than jwtCacheTTL ago
		time.Sleep(jwtCacheTTL)
		wantRefused(t, a, bearer(old), "signature")
	})
}

func TestATokenWhoseKeyCannotBeReadMayBeValid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, one, n := oidcFixture(t, plainMapping)
		old := one.Token("e", nil)
		wantUser(t, a, bearer(old), `oidc:alice "" [system:authenticated]`)
		synctest.Wait()
		one.SetKeys(map[string]crypto.Signer{"new": testissuer.NewECKey(t)})
		token := one.Token("new", nil)
		reachable := n.listeners["one.example.com:443"]
		n.set("one.example.com:443", nil)
		_, ok, err := a.Authenticate(bearer(token))
		var temporary interface{ Temporary() bool }
		if ok || !errors.As(err, &temporary) || !temporary.Temporary() || !strings.Contains(err.Error(), "refused") {
			t.Errorf("while the keys cannot be read: %v, %v", ok, err)
		}
		n.set("one.example.com:443", reachable)
		wantUser(t, a, bearer(token), `oidc:alice "" [system:authenticated]`)
		time.Sleep(jwtCacheTTL)
		if _, ok, err = a.Authenticate(bearer(old)); ok || errors.As(err, &temporary) {
			t.Errorf("a token of a key that is not the issuer's any more: %v, %v", ok, err)
		}
	})
}

// A client without a valid token can cause few requests to the issuer, and none with a token that is not the issuer's.
func TestInvalidTokensCauseFewRequestsToTheIssuer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, one, n := oidcFixture(t, plainMapping)
		wantUser(t, a, bearer(one.Token("r", nil)), `oidc:alice "" [system:authenticated]`)
		discoveries, before := one.Counts()
		for range 100 {
			wantRefused(t, a, bearer("not-a-token"), "invalid bearer token")
			wantRefused(t, a, bearer("e30.e30.e30"), "invalid bearer token")
			wantRefused(t, a, bearer(one.Token("r", map[string]any{"iss": "https://evil.example.com"})), "invalid")
			wantRefused(t, a, bearer(one.Token("r", map[string]any{"aud": "x"})), "audience")
		}
		if again, after := one.Counts(); after != before || again != discoveries {
			t.Errorf("tokens that are not the issuer's caused %d requests", after-before+again-discoveries)
		}
		forged := testissuer.NewECKey(t)
		for range 100 {
			wantRefused(t, a, bearer(testissuer.SignToken("unknown", forged, map[string]any{"iss": one.URL, "aud": "mirador",
				"sub": "alice", "exp": time.Now().Add(time.Hour).Unix()})), "verify token")
		}
		if _, after := one.Counts(); after-before > keysBurst {
			t.Errorf("100 tokens with an unknown key caused %d requests; want at most %d", after-before, keysBurst)
		}
		for address := range n.dials {
			if address != "one.example.com:443" {
				t.Errorf("%s was contacted", address)
			}
		}
		// Keys that are known stay usable, and new ones are fetched again after a second.
		wantUser(t, a, bearer(one.Token("e", nil)), `oidc:alice "" [system:authenticated]`)
		one.SetKeys(map[string]crypto.Signer{"new": testissuer.NewECKey(t)})
		time.Sleep(time.Second)
		wantUser(t, a, bearer(one.Token("new", nil)), `oidc:alice "" [system:authenticated]`)
	})
}

func TestSeveralIssuersWithExpressions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n network
		one := testissuer.New(t, "one.example.com", map[string]crypto.Signer{"k": testissuer.NewECKey(t)})
		two := testissuer.New(t, "two.example.com", map[string]crypto.Signer{"k": testissuer.NewECKey(t)})
		serve(t, one, n.listen("one.example.com:443"))
		serve(t, two, n.listen("two.example.com:443"))
		a, err := newAuthenticator(Options{AuthenticationConfig: write(t, "config.yaml", testissuer.Configuration(
			one.Entry(plainMapping), two.Entry(`  claimMappings:
    username: {expression: "'two:' + claims.sub"}
    groups: {expression: "claims.roles.split(',').map(r, 'two:' + r)"}
    uid: {expression: "claims.employee"}
    extra:
    - {key: example.com/tenant, valueExpression: claims.tenant}
  claimValidationRules:
  - {expression: claims.hd == 'example.com', message: the hosted domain must be example.com}
  - {claim: env, requiredValue: prod}
  userValidationRules:
  - {expression: "!user.username.startsWith('two:system:')", message: system names are not for people}
`)))}, n.dial)
		check(t, err)
		run(t, a)
		claims := map[string]any{"sub": "bob", "roles": "dev,ops", "employee": "7", "tenant": "acme", "hd": "example.com",
			"env": "prod"}
		wantUser(t, a, bearer(one.Token("k", nil)), `oidc:alice "" [system:authenticated]`)
		wantUser(t, a, bearer(two.Token("k", claims)),
			`two:bob "7" [two:dev two:ops system:authenticated] map[example.com/tenant:[acme]]`)
		refused := func(reason, claim string, value any) {
			t.Helper()
			changed := map[string]any{}
			for k, v := range claims {
				changed[k] = v
			}
			changed[claim] = value
			wantRefused(t, a, bearer(two.Token("k", changed)), reason)
		}
		refused("the hosted domain must be example.com", "hd", "evil.com")
		refused("required claim env", "env", "test")
		refused("system names are not for people", "sub", "system:masters")
		refused("claim expression", "roles", 7)
		// A token that the other issuer's key has signed is not a token of this issuer.
		wantRefused(t, a, bearer(two.Token("k", map[string]any{"iss": one.URL})), "signature")
	})
}

func TestIssuersCannotGiveReservedNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, one, _ := oidcFixture(t, `  claimMappings:
    username: {claim: sub, prefix: ""}
    groups: {claim: groups, prefix: ""}
`)
		const reserved = `begin with "mirador:" are reserved`
		wantRefused(t, a, bearer(one.Token("r", map[string]any{"sub": "mirador:admin"})), reserved)
		wantRefused(t, a, bearer(one.Token("r", map[string]any{"groups": "mirador:administrators"})), reserved)
		wantRefused(t, a, bearer(one.Token("r", map[string]any{"groups": []string{"x", "mirador:y"}})), reserved)
		wantRefused(t, a, bearer(one.Token("r", map[string]any{"sub": "system:anonymous"})), "without a credential")
		wantUser(t, a, bearer(one.Token("r", map[string]any{"groups": "x"})), `alice "" [x system:authenticated]`)
	})
}

func TestAnIssuerThatIsDownAtStartIsUsedOnceItIsReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n network
		var log journal
		one := testissuer.New(t, "one.example.com", map[string]crypto.Signer{"k": testissuer.NewECKey(t)})
		a,
			err := newAuthenticator(Options{TokenAuthFile: write(t, "tokens.csv", bobsToken+",bob,1002\n"),
			Logger:               log.logger(),
			AuthenticationConfig: write(t, "config.yaml", testissuer.Configuration(one.Entry(plainMapping)))}, n.dial)
		check(t, err)
		token := one.Token("k", nil)
		wantRefused(t, a, bearer(token), "refused until the authenticator runs")
		run(t, a)
		time.Sleep(time.Minute)
		wantRefused(t, a, bearer(token), "connection refused")
		wantUser(t, a, bearer(bobsToken), `bob "1002" [system:authenticated]`)
		if n := strings.Count(log.String(), "the issuer cannot be reached"); n != 1 {
			t.Errorf("the log names the issuer %d times in a minute; want once:\n%s", n, log.String())
		}
		serve(t, one, n.listen("one.example.com:443"))
		time.Sleep(20 * time.Second) // the authenticator tries every 10 seconds
		synctest.Wait()
		wantUser(t, a, bearer(token), `oidc:alice "" [system:authenticated]`)
		if !strings.Contains(log.String(), "the issuer was reached") {
			t.Errorf("the log does not say that the issuer was reached:\n%s", log.String())
		}
		if strings.Contains(log.String(), token) {
			t.Error("the log has the token")
		}
	})
}

func TestAnIssuerIsVerified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n network
		impostor := testissuer.New(t, "impostor.example.com", map[string]crypto.Signer{"k": testissuer.NewECKey(t)})
		misnamed := testissuer.New(t, "misnamed.example.com", map[string]crypto.Signer{"k": testissuer.NewECKey(t)})
		misnamed.Named = "https://other.example.com"
		configured := &testissuer.Issuer{URL: impostor.URL,
			Authority: testissuer.NewAuthority(t, "the authority of the configuration")}
		serve(t, impostor, n.listen("impostor.example.com:443"))
		serve(t, misnamed, n.listen("misnamed.example.com:443"))
		a, err := newAuthenticator(Options{AuthenticationConfig: write(t, "config.yaml",
			testissuer.Configuration(configured.Entry(plainMapping), misnamed.Entry(plainMapping)))}, n.dial)
		check(t, err)
		run(t, a)
		time.Sleep(time.Minute)
		wantRefused(t, a, bearer(impostor.Token("k", nil)), "certificate signed by unknown authority")
		wantRefused(t, a, bearer(misnamed.Token("k", nil)), "issuer did not match")
	})
}

func TestAChangedConfigurationKeepsTheOtherIssuers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n network
		var log journal
		one := testissuer.New(t, "one.example.com", map[string]crypto.Signer{"k": testissuer.NewECKey(t)})
		two := testissuer.New(t, "two.example.com", map[string]crypto.Signer{"k": testissuer.NewECKey(t)})
		serve(t, one, n.listen("one.example.com:443"))
		serve(t, two, n.listen("two.example.com:443"))
		path := write(t, "config.yaml", testissuer.Configuration(one.Entry(plainMapping)))
		a, err := newAuthenticator(Options{AuthenticationConfig: path, Logger: log.logger()}, n.dial)
		check(t, err)
		run(t, a)
		reload := func(content string) {
			t.Helper()
			check(t, os.WriteFile(path, []byte(content), 0o600))
			a.Reload()
			synctest.Wait()
			time.Sleep(time.Second)
			synctest.Wait()
		}
		const alice = `oidc:alice "" [system:authenticated]`
		wantUser(t, a, bearer(one.Token("k", nil)), alice)
		wantRefused(t, a, bearer(two.Token("k", nil)), "invalid bearer token")

		reload(testissuer.Configuration(one.Entry(plainMapping), two.Entry(plainMapping)))
		wantUser(t, a, bearer(two.Token("k", nil)), alice)
		if discoveries, _ := one.Counts(); discoveries != 1 {
			t.Errorf("the issuer that did not change was contacted %d times", discoveries)
		}

		reload(testissuer.Configuration(one.Entry(plainMapping), two.Entry(strings.ReplaceAll(plainMapping, "oidc:", "2:"))))
		wantUser(t, a, bearer(two.Token("k", nil)), `2:alice "" [system:authenticated]`)

		reload(testissuer.Configuration("- issuer: {url: 'http://plain.example.com'}\n"))
		wantUser(t, a, bearer(one.Token("k", nil)), alice)
		if !strings.Contains(log.String(), "URL scheme must be https") {
			t.Errorf("the log does not say what is wrong:\n%s", log.String())
		}

		reload(testissuer.Configuration(two.Entry(plainMapping)))
		wantRefused(t, a, bearer(one.Token("k", nil)), "invalid bearer token")
		wantUser(t, a, bearer(two.Token("k", nil)), alice)
	})
}

func TestRunIsCalledOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, err := New(Options{})
		check(t, err)
		run(t, a)
		if a.Run(t.Context()) == nil {
			t.Error("Run ran twice")
		}
	})
}
