package fleet

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// endpoint is the address of a cluster, with a transport that adds the credentials.
type endpoint struct {
	base  *url.URL
	next  http.RoundTripper
	fleet string // the id for fleetHeader
}

// newEndpoint returns the endpoint of a config. It sends no request.
func newEndpoint(cfg *rest.Config, conns *dialer, redact *redactor, fleet string) (*endpoint, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = userAgent
	cfg.Timeout = 0 // it would end watches
	cfg.Dial = conns.DialContext
	cfg.APIPath = "/"
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, redact.error(fmt.Errorf("the config's Host is not usable; set it to a URL such as "+
			"https://127.0.0.1:6443: %w", err))
	}
	next, err := rest.TransportFor(cfg)
	if err != nil {
		return nil, redact.error(fmt.Errorf("the config's TLS or credentials are not usable; check its certificates and "+
			"the files it names: %w", err))
	}
	return &endpoint{base: base, next: next, fleet: fleet}, nil
}

// switchingTransport sends requests to the current endpoint, which may change while a cluster is mirrored. All
// requests are made for the first address, which the transport replaces. Requests in progress continue with their
// endpoint, so that no watch is lost.
//
// It refuses redirects. An API server sends none for these requests, and the credentials, which the endpoint's
// transport adds, would be sent to the new address.
type switchingTransport struct {
	first *url.URL
	now   atomic.Pointer[endpoint]
}

func newSwitchingTransport(w *endpoint) *switchingTransport {
	s := &switchingTransport{first: w.base}
	s.now.Store(w)
	return s
}

// RoundTrip sends a request to the current endpoint.
func (s *switchingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	w := s.now.Load()
	if w.base != s.first {
		r = rebased(r, s.first, w.base)
	} else {
		r = r.Clone(r.Context())
	}
	r.Header.Set(fleetHeader, w.fleet)
	resp, err := w.next.RoundTrip(r)
	if err == nil && resp.StatusCode >= 300 && resp.StatusCode < 400 && resp.Header.Get("Location") != "" {
		resp.Body.Close()
		return nil, &redirectError{resp.StatusCode}
	}
	return resp, err
}

// rebased returns a request for the same path below another address.
func rebased(r *http.Request, from, to *url.URL) *http.Request {
	u := *r.URL
	u.Scheme, u.Host = to.Scheme, to.Host
	u.Path = strings.TrimSuffix(to.Path, "/") + strings.TrimPrefix(u.Path, strings.TrimSuffix(from.Path, "/"))
	u.RawPath = ""
	r = r.Clone(r.Context())
	r.URL, r.Host = &u, ""
	return r
}

// use sets the endpoint of all later requests.
func (s *switchingTransport) use(w *endpoint) {
	old := s.now.Swap(w)
	utilnet.CloseIdleConnectionsFor(old.next)
}

// WrappedRoundTripper returns the current endpoint's transport, so that its connections can be closed.
func (s *switchingTransport) WrappedRoundTripper() http.RoundTripper { return s.now.Load().next }
