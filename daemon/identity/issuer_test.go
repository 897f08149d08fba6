package identity

import (
	"crypto"
	"strings"
	"testing"

	"github.com/mirador-k8s/mirador/dev/testissuer"
)

func TestAnIssuerIsFoundByItsURLOrIfItIsTheOnlyOne(t *testing.T) {
	one := testissuer.New(t, "one.example.com", map[string]crypto.Signer{})
	two := testissuer.New(t, "two.example.com", map[string]crypto.Signer{})
	for _, c := range []struct {
		file, url string
		want      string // the URL, or a part of the error
	}{
		{testissuer.Configuration(one.Entry(plainMapping)), "", one.URL},
		{testissuer.Configuration(one.Entry(plainMapping), two.Entry(plainMapping)), two.URL, two.URL},
		{testissuer.Configuration(one.Entry(plainMapping), two.Entry(plainMapping)), "",
			"choose one of https://one.example.com, https://two.example.com"},
		{testissuer.Configuration(one.Entry(plainMapping)), two.URL,
			`"https://two.example.com" is not configured; there are https://one.example.com`},
		{"", "", "no OIDC issuer is configured"},
	} {
		var o Options
		if c.file != "" {
			o.AuthenticationConfig = write(t, "config.yaml", c.file)
		}
		a, err := New(o)
		check(t, err)
		found, err := a.Issuer(c.url)
		switch {
		case err != nil && !strings.Contains(err.Error(), c.want):
			t.Errorf("%q: the error is %v, want %s", c.url, err, c.want)
		case err == nil && (found.URL != c.want || found.DiscoveryURL != c.want+"/.well-known/openid-configuration" ||
			found.Audiences[0] != "mirador" || found.Client == nil):
			t.Errorf("%q: %+v, want %s", c.url, found, c.want)
		}
	}
}
