package identity

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Issuer is an OIDC issuer of the configuration, for a client that logs users in there.
type Issuer struct {
	URL string
	// DiscoveryURL is the address of its discovery document.
	DiscoveryURL string
	// Audiences are those of which a token needs one.
	Audiences []string
	// Client sends requests to the issuer. It trusts the configured authority, and bounds answers.
	Client *http.Client
}

// Issuer returns an issuer of the current configuration. "" is the URL of the only one.
func (a *Authenticator) Issuer(url string) (*Issuer, error) {
	all := a.issuers.Load().byURL
	known := strings.Join(slices.Sorted(maps.Keys(all)), ", ")
	switch {
	case len(all) == 0:
		return nil, errors.New("no OIDC issuer is configured; name one in the file of --authentication-config")
	case url == "" && len(all) > 1:
		return nil, fmt.Errorf("several OIDC issuers are configured; choose one of %s", known)
	case url == "":
		for url = range all {
		}
	}
	one := all[url]
	if one == nil {
		return nil, fmt.Errorf("the OIDC issuer %q is not configured; there are %s", url, known)
	}
	config := &one.config.Issuer
	client, err := newIssuerClient(config, a.dial)
	if err != nil {
		return nil, err
	}
	discovery := config.DiscoveryURL
	if discovery == "" {
		discovery = discoveryURL(config.URL)
	}
	return &Issuer{URL: config.URL, DiscoveryURL: discovery, Audiences: slices.Clone(config.Audiences),
		Client: client}, nil
}
