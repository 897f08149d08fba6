package identity

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/mirador-k8s/mirador/dev/testissuer"
)

const brokenPEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"

func TestBadOptionsAreRefusedWithTheReason(t *testing.T) {
	authority := testissuer.NewAuthority(t, "shared")
	one := testissuer.New(t, "one.example.com", nil)
	tokens := func(content string) Options { return Options{TokenAuthFile: write(t, "tokens.csv", content)} }
	config := func(content string) Options { return Options{AuthenticationConfig: write(t, "config.yaml", content)} }
	proxy := func(h RequestHeader) Options {
		if h.ClientCAFile == "" {
			h.ClientCAFile = write(t, "proxy.pem", authority.PEM)
		}
		return Options{RequestHeader: h}
	}
	for name, c := range map[string]struct {
		opts Options
		want []string
	}{
		"no token file": {Options{TokenAuthFile: filepath.Join(t.TempDir(), "absent.csv")},
			[]string{"read the static tokens of ", "absent.csv: no such file or directory"}},
		"an empty token file": {tokens(""), []string{"tokens.csv", "it has no tokens", "write token,user,uid"}},
		"two columns": {tokens("s3cret,alice,1\ns3cret2,bob\n"),
			[]string{"line 2 has 2 columns", "write token,user"}},
		"five columns":         {tokens("s3cret,alice,1,dev,ops\n"), []string{"line 1 has 5 columns", `"group1,group2"`}},
		"bad CSV":              {tokens("s3\"cret,alice,1\n"), []string{"parse error on line 1"}},
		"an empty token":       {tokens(",alice,1\n"), []string{"line 1 has an empty token"}},
		"a token with a space": {tokens("s3 cret,alice,1\n"), []string{"line 1 has a token with spaces"}},
		"no user":              {tokens("s3cret,,1\n"), []string{`line 1: the user name is ""`}},
		"a space in the user":  {tokens("s3cret, alice,1\n"), []string{`the user name is " alice"`}},
		"a token twice": {tokens("s3cret,alice,1\ns3cret,bob,2\n"),
			[]string{"line 2 has the token of an earlier line"}},
		"a space in groups":      {tokens("s3cret,alice,1,\"dev, ops\"\n"), []string{`the groups contain " ops"`}},
		"a reserved static user": {tokens("s3cret,mirador:admin,1\n"), []string{"line 1", "are reserved for the daemon"}},
		"a reserved group": {tokens("s3cret,alice,1,\"a,mirador:administrators\"\n"),
			[]string{"line 1", `the group "mirador:administrators"`, "are reserved for the daemon"}},

		"no CA file": {Options{ClientCAFile: "/absent/ca.pem"},
			[]string{"client authorities of /absent/ca.pem: no such"}},
		"a CA without PEM": {Options{ClientCAFile: write(t, "ca.pem", "hello")},
			[]string{"ca.pem", "no certificates in PEM"}},
		"a broken CA": {Options{ClientCAFile: write(t, "ca.pem", authority.PEM+brokenPEM)},
			[]string{"PEM block 2 is not a certificate"}},
		"no proxy CA file": {proxy(RequestHeader{ClientCAFile: "/absent/p.pem"}),
			[]string{"front proxy's authorities of /absent/p.pem"}},
		"headers without CA": {Options{RequestHeader: RequestHeader{GroupHeaders: []string{"X"}}},
			[]string{"need the authority"}},
		"an empty name": {proxy(RequestHeader{AllowedNames: []string{" "}}), []string{"contain an empty name"}},
		"a bad header": {proxy(RequestHeader{UsernameHeaders: []string{"X User"}}),
			[]string{`"X User"`, "not the name of a header"}},
		"a header of tokens": {proxy(RequestHeader{GroupHeaders: []string{"authorization"}}), []string{"which has tokens"}},
		"an authority of clients and the proxy": {Options{ClientCAFile: write(t, "ca.pem", authority.PEM),
			RequestHeader: RequestHeader{ClientCAFile: write(t, "proxy.pem", authority.PEM)}},
			[]string{"proxy.pem", "every client could name any user", "give the allowed names"}},

		"an empty configuration": {config(" \n"),
			[]string{"config.yaml", "it is empty", "kind: AuthenticationConfiguration"}},
		"no kind": {config("jwt: []\n"), []string{"apiVersion or kind is missing"}},
		"another kind": {config("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n"),
			[]string{"config.yaml", "kind: AuthenticationConfiguration"}},
		"an unknown version": {config("apiVersion: apiserver.config.k8s.io/v9\nkind: AuthenticationConfiguration\n"),
			[]string{`"apiserver.config.k8s.io/v9"`, "begin it with"}},
		"not YAML": {config("a: [\n"), []string{"config.yaml", "yaml"}},
		"an unknown field": {config(testissuer.Configuration(one.Entry(plainMapping + "  colour: red\n"))),
			[]string{`unknown field "jwt[0].colour"`}},
		"an issuer without TLS": {config(testissuer.Configuration("- issuer: {url: 'http://x', audiences: [a]}\n" +
			plainMapping)),
			[]string{"jwt[0].issuer.url", "URL scheme must be https"}},
		"an issuer twice": {config(testissuer.Configuration(one.Entry(plainMapping), one.Entry(plainMapping))),
			[]string{"jwt[1].issuer.url: Duplicate value"}},
		"no audience": {config(testissuer.Configuration("- issuer: {url: 'https://x'}\n" + plainMapping)),
			[]string{"jwt[0].issuer.audiences: Required"}},
		"a bad issuer's CA": {config(testissuer.Configuration(
			"- issuer: {url: 'https://x', audiences: [a], certificateAuthority: x}\n" +
				plainMapping)), []string{"jwt[0].issuer.certificateAuthority"}},
		"a bad expression": {config(testissuer.Configuration(one.Entry(
			"  claimMappings:\n    username: {expression: 'claims.sub +'}\n"))),
			[]string{"jwt[0].claimMappings.username.expression", "Syntax error"}},
		"an expression of another type": {config(testissuer.Configuration(one.Entry(plainMapping +
			"  userValidationRules: [{expression: '1'}]\n"))), []string{"jwt[0].userValidationRules[0].expression"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(c.opts)
			if err == nil {
				t.Fatal("the options are accepted")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %q; want it to have %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "s3") {
				t.Errorf("the error has a token: %q", err)
			}
		})
	}
}

func TestAnAuthorityMayServeClientsAndAProxyWithAName(t *testing.T) {
	authority := testissuer.NewAuthority(t, "shared")
	a, err := New(Options{ClientCAFile: write(t, "ca.pem", authority.PEM), RequestHeader: RequestHeader{
		ClientCAFile: write(t, "proxy.pem", authority.PEM), AllowedNames: []string{"proxy"}}})
	check(t, err)
	wantUser(t, a, with(request("X-Remote-User: dave"), authority.Sign(t, "proxy")), `dave "" [system:authenticated]`)
	wantUser(t, a, with(request("X-Remote-User: dave"), authority.Sign(t, "carol")), `carol "" [system:authenticated]`)
}

// The same file works for older API servers, and what does not concern the daemon is ignored.
func TestOlderVersionsAndForeignFieldsOfTheConfigurationAreAccepted(t *testing.T) {
	one := testissuer.New(t, "one.example.com", nil)
	text := testissuer.Configuration(one.Entry(plainMapping)) + "anonymous: {enabled: true}\n"
	for _, version := range []string{"v1", "v1beta1"} {
		_, err := New(Options{AuthenticationConfig: write(t, "config.yaml", strings.Replace(text,
			"apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/"+version, 1))})
		check(t, err)
	}
}
