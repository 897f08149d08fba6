package identity

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apiserver/pkg/apis/apiserver"
)

const (
	issuerTimeout = 10 * time.Second
	// maxIssuerAnswer is how many bytes of an answer of an issuer are read.
	maxIssuerAnswer = 1 << 20
	// keysPerSecond and keysBurst bound how often the keys of an issuer are fetched. A token with a wrong signature
	// causes a fetch, and every client can send one.
	keysPerSecond, keysBurst = 1, 5
)

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// newIssuerClient returns the client for all requests to an issuer.
func newIssuerClient(i *apiserver.Issuer, dial dialFunc) (*http.Client, error) {
	tlsConfig := &tls.Config{}
	if i.CertificateAuthority != "" {
		ca, err := parseAuthority([]byte(i.CertificateAuthority))
		if err != nil {
			return nil, fmt.Errorf("the certificateAuthority of the issuer %q: %w", i.URL, err)
		}
		tlsConfig.RootCAs = ca.pool
	}
	return &http.Client{Timeout: issuerTimeout, Transport: &issuerTransport{
		discovery: discoveryURL(i.URL), discoveryURL: i.DiscoveryURL,
		fetches: rate.NewLimiter(keysPerSecond, keysBurst),
		// Requests are rare, and a connection that is not kept needs no end.
		next: &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: dial, TLSClientConfig: tlsConfig,
			TLSHandshakeTimeout: issuerTimeout, DisableKeepAlives: true},
	}}, nil
}

// discoveryURL returns where the discovery document of an issuer is, unless the configuration says otherwise.
func discoveryURL(issuer string) string {
	return strings.TrimSuffix(issuer, "/") + "/.well-known/openid-configuration"
}

// issuerTransport bounds the answers of an issuer, and how often its keys are fetched. The address of the keys is in
// the issuer's discovery document.
type issuerTransport struct {
	discovery, discoveryURL string
	keys                    atomic.Pointer[string]
	fetches                 *rate.Limiter
	next                    http.RoundTripper
}

var errKeysFetched = errors.New("the keys were fetched moments ago and are not fetched again yet")

// RoundTrip sends a request.
func (t *issuerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	url := r.URL.String()
	if keys := t.keys.Load(); keys != nil && url == *keys && !t.fetches.Allow() {
		return nil, errKeysFetched
	}
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxIssuerAnswer+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxIssuerAnswer {
		return nil, fmt.Errorf("the answer is longer than %d bytes", maxIssuerAnswer)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if url == t.discovery || url == t.discoveryURL {
		var document struct {
			Keys string `json:"jwks_uri"`
		}
		if json.Unmarshal(body, &document) == nil && document.Keys != "" {
			t.keys.Store(&document.Keys)
		}
	}
	return resp, nil
}
