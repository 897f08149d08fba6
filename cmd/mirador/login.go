package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/mirador-k8s/mirador/daemon/identity"
	"github.com/mirador-k8s/mirador/daemon/login"
	"github.com/mirador-k8s/mirador/daemon/server"
)

// loginFlags are the flags that say how users log in on the page.
type loginFlags struct {
	options login.Options
}

func (f *loginFlags) add(flags *pflag.FlagSet) {
	o := &f.options
	flags.StringVar(&o.ClientID, "login-client-id", "",
		"`name` of the page's client at the OIDC issuer; with it, users log in on the page (authorization code with PKCE)")
	flags.StringVar(&o.ClientSecretFile, "login-client-secret-file", "",
		"`file` with the secret of that client (default: a public client, which has none)")
	flags.StringVar(&o.Issuer, "login-issuer", "",
		"`URL` of an issuer in --authentication-config (default: the only one)")
	flags.StringSliceVar(&o.Scopes, "login-scopes", nil,
		"`scope` to request besides openid (default: profile, email, groups and offline_access, if the issuer supports them)")
	flags.StringVar(&o.URL, "login-url", "",
		"`URL` of the page in browsers; the issuer must allow the redirect URI URL/login/callback (default: as printed at "+
			"the start)")
}

// login returns what logs users in, or nil if no flag asks for it. users may be nil.
func (f *loginFlags) login(users *identity.Authenticator, listen string, hosts []string,
	withTLS bool) (*login.Login, error) {
	o := f.options
	if o.ClientID == "" {
		if o.ClientSecretFile != "" || o.Issuer != "" || len(o.Scopes) > 0 || o.URL != "" {
			return nil, errors.New("--login-client-secret-file, --login-issuer, --login-scopes and --login-url are for " +
				"--login-client-id; give it, too")
		}
		return nil, nil
	}
	if users == nil {
		return nil, errors.New("--login-client-id needs an OIDC issuer; name one in the file of --authentication-config")
	}
	if o.URL == "" {
		address, err := net.ResolveTCPAddr("tcp", listen)
		if err != nil || address.Port == 0 {
			return nil, fmt.Errorf("--login-client-id: the URL of the page is not known with --listen %s; give it with "+
				"--login-url", listen)
		}
		o.URL = pageURL(address, hosts, withTLS)
	}
	o.Users = users
	l, err := login.New(o)
	if err != nil {
		return nil, fmt.Errorf("login: %w", err)
	}
	if err := checkLoginURL(o.URL, hosts); err != nil {
		return nil, err
	}
	return l, nil
}

// checkLoginURL returns an error if browsers would send cookies unencrypted to the URL of the page, or if the server
// would refuse their requests.
func checkLoginURL(page string, hosts []string) error {
	u, err := url.Parse(page)
	if err != nil {
		return fmt.Errorf("--login-url: %w", err)
	}
	host := u.Hostname()
	switch {
	case server.IsLoopback(host):
		return nil
	case u.Scheme != "https":
		return fmt.Errorf("--login-url %s: codes and cookies of logins could be read on their way; it must begin with "+
			"https://, unless its host is a loopback address", page)
	case !slices.ContainsFunc(hosts, func(h string) bool { return strings.EqualFold(h, host) }):
		return fmt.Errorf("--login-url %s: the daemon refuses requests under this name; add --allow-host %s", page, host)
	}
	return nil
}
