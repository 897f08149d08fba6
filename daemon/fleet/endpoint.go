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

// way is how requests reach a cluster: by which address and with which credentials.
type way struct {
	base  *url.URL
	next  http.RoundTripper
	fleet string // the id that requests carry
}

// newWay makes a transport of a config. Nothing is sent.
func newWay(cfg *rest.Config, conns *dialer, hide *hider, fleet string) (*way, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = userAgent
	cfg.Timeout = 0 // it would end watches
	cfg.Dial = conns.DialContext
	cfg.APIPath = "/"
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, hide.error(fmt.Errorf("the config's Host is not usable; set it to a URL such as "+
			"https://127.0.0.1:6443: %w", err))
	}
	next, err := rest.TransportFor(cfg)
	if err != nil {
		return nil, hide.error(fmt.Errorf("the config's TLS or credentials are not usable; check its certificates and "+
			"the files it names: %w", err))
	}
	return &way{base: base, next: next, fleet: fleet}, nil
}

// switched sends requests by the way that counts at the time, which may change while a cluster is mirrored. Whoever
// makes a request goes on using the cluster's first address. What is under way goes on as it began, so that no watch
// is lost.
//
// It follows no redirects. An API server sends none for what is asked here, and the credentials, which are added
// below, would go along to wherever it points.
type switched struct {
	first *url.URL
	now   atomic.Pointer[way]
}

func newSwitched(w *way) *switched {
	s := &switched{first: w.base}
	s.now.Store(w)
	return s
}

// RoundTrip refuses an answer that points elsewhere.
func (s *switched) RoundTrip(r *http.Request) (*http.Response, error) {
	w := s.now.Load()
	if w.base != s.first {
		r = redirected(r, s.first, w.base)
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

// redirected is a request to the same path below another address.
func redirected(r *http.Request, from, to *url.URL) *http.Request {
	u := *r.URL
	u.Scheme, u.Host = to.Scheme, to.Host
	u.Path = strings.TrimSuffix(to.Path, "/") + strings.TrimPrefix(u.Path, strings.TrimSuffix(from.Path, "/"))
	u.RawPath = ""
	r = r.Clone(r.Context())
	r.URL, r.Host = &u, ""
	return r
}

// use has all requests from now on take another way.
func (s *switched) use(w *way) {
	old := s.now.Swap(w)
	utilnet.CloseIdleConnectionsFor(old.next)
}

// WrappedRoundTripper gives the transport below, whose connections can be closed.
func (s *switched) WrappedRoundTripper() http.RoundTripper { return s.now.Load().next }
