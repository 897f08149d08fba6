package fleet_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

// inside is the answer of an address in the daemon's network. No client of the daemon may see it.
const inside = "INSIDE-10.1.2.3"

// probe joins a cluster as a client would to learn what answers at an address.
func (w *world) probe(cfg *rest.Config) *fleet.Cluster {
	w.Helper()
	if err := w.f.Join("probe", cfg, fleet.Origin{Kind: fleet.FromJoin, Detail: cfg.Host}); err != nil {
		w.Fatal(err)
	}
	c, _ := w.f.Cluster("probe")
	return c
}

func TestErrorContainsNothingOfAForeignAnswer(t *testing.T) {
	status := `{"kind":"Status","apiVersion":"v1","message":"` + inside + `","code":500}`
	redirect := func() *http.Response {
		resp := reply(http.StatusFound, "text/html", strings.NewReader(inside))
		resp.Header.Set("Location", "http://"+inside+"/")
		return resp
	}
	text := func(code int, body string) func() *http.Response {
		return func() *http.Response { return reply(code, "text/plain", strings.NewReader(body)) }
	}
	for name, c := range map[string]struct {
		answer func() *http.Response
		says   string
	}{
		"an error of another server": {text(500, inside),
			"get /api from http://informertest.invalid: the server failed (500)"},
		"a Status": {func() *http.Response { return reply(502, "application/json", strings.NewReader(status)) },
			"the server failed (502)"},
		"a login page": {func() *http.Response { return reply(200, "text/html", strings.NewReader("<html>"+inside)) },
			"not a Kubernetes API server"},
		"JSON of another kind": {func() *http.Response {
			return replyJSON(`{"gitVersion":"` + inside + `","versions":["` + inside + `"]}`)
		}, "not a Kubernetes API server"},
		"JSON of another type": {func() *http.Response { return replyJSON(`"` + inside + `"`) },
			"not a Kubernetes API server"},
		"a redirect":          {redirect, "a redirect, which is not followed"},
		"credentials refused": {text(401, inside), "the credentials were refused (401)"},
		"credentials not allowed": {text(403, inside),
			"the credentials are not allowed to get, list and watch this (403)"},
		"nothing there": {text(404, inside), "the server does not have this (404)"},
		"no method":     {text(405, inside), "the server refused the request (405)"},
		"an answer that does not end": {func() *http.Response { return reply(200, "application/json", endless(inside)) },
			"the answer is larger than"},
		"an aggregated answer, malformed": {func() *http.Response {
			return reply(200, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
				strings.NewReader(`{"kind":"`+inside))
		}, "not a Kubernetes API server"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, fleet.Options{}, func(w *world) {
				_, cfg := w.server()
				cluster := w.probe(wrapped(cfg, func(*http.Request) *http.Response { return c.answer() }))
				h := w.untilState(cluster, fleet.Unreachable)
				if !strings.Contains(h.Err, c.says) || strings.Contains(h.Err, inside) ||
					strings.Contains(string(cluster.Version()), inside) {
					t.Errorf("Err = %q, want %q and nothing of the answer", h.Err, c.says)
				}
			})
		})
	}
}

func TestConnectionErrorContainsNothingOfTheNetwork(t *testing.T) {
	address := &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 443}
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Addr: address, Err: err} }
	for says, failure := range map[string]error{
		"the connection was refused":                  dial(syscall.ECONNREFUSED),
		"there is no route to the server":             dial(syscall.EHOSTUNREACH),
		"the connection was closed by the other side": dial(syscall.ECONNRESET),
		"the host name cannot be resolved": dial(&net.DNSError{Err: "no such host",
			Name: "web.internal", Server: "10.1.2.3:53", IsNotFound: true}),
		"it timed out": dial(context.DeadlineExceeded),
		"the server's certificate is not trusted: another author": &tls.CertificateVerificationError{
			Err: x509.UnknownAuthorityError{}},
		"the server's certificate is not trusted: it is for anot": x509.HostnameError{
			Certificate: &x509.Certificate{DNSNames: []string{inside}}, Host: "x"},
		"the server's certificate is not trusted: it has expired": x509.CertificateInvalidError{Reason: x509.Expired,
			Detail: inside},
		"the server refused the TLS handshake":          tls.AlertError(42),
		"the server does not speak TLS":                 http.ErrSchemeMismatch,
		"the request failed; the daemon's log says why": errors.New("proxy: " + inside),
	} {
		inWorld(t, fleet.Options{}, func(w *world) {
			_, cfg := w.server()
			cfg.Wrap(func(http.RoundTripper) http.RoundTripper {
				return roundTrip(func(*http.Request) (*http.Response, error) { return nil, failure })
			})
			h := w.untilState(w.probe(cfg), fleet.Unreachable)
			if !strings.Contains(h.Err, says) || strings.Contains(h.Err, "10.1.2.3") || strings.Contains(h.Err, "internal") {
				t.Errorf("Err = %q, want %q", h.Err, says)
			}
			if !strings.Contains(w.logs.String(), failure.Error()[:8]) {
				t.Errorf("the log does not have the cause:\n%s", w.logs)
			}
		})
	}
}

// The operator's own kubeconfigs may name a plugin, whose errors have no known kind.
func TestUnknownErrorOfTheOperatorsOwnClusterIsShown(t *testing.T) {
	inWorld(t, fleet.Options{}, func(w *world) {
		_, cfg := w.server()
		cfg.Wrap(func(http.RoundTripper) http.RoundTripper {
			return roundTrip(func(*http.Request) (*http.Response, error) { return nil, errors.New("exec: no such plugin") })
		})
		if h := w.untilState(w.join("eu", cfg), fleet.Unreachable); !strings.Contains(h.Err, "exec: no such plugin") {
			t.Errorf("Err = %q", h.Err)
		}
	})
}

func TestErrorOfAResourceContainsNothingOfTheAnswer(t *testing.T) {
	inWorld(t, fleet.Options{Include: []string{"pods"}}, func(w *world) {
		_, cfg := w.server()
		c := w.probe(wrapped(cfg, func(r *http.Request) *http.Response {
			switch {
			case strings.HasSuffix(r.URL.Path, "/pods"):
				return reply(http.StatusForbidden, "text/plain", strings.NewReader(inside))
			case r.URL.Path == "/version":
				return replyJSON(`{"gitVersion":"` + inside + `"}`)
			}
			return nil
		}))
		w.until("the failure is in the health", func() bool { return strings.Contains(c.Health().Err, "(403)") })
		pods, _ := c.Resource(podsGVR)
		err := pods.Health().Reflector.Err
		says(t, err, "forbidden: the credentials are not allowed to get, list and watch this (403)")
		if strings.Contains(err.Error(), inside) || strings.Contains(c.Health().Err, inside) || c.Version() != nil {
			t.Errorf("%v, %s, %s", err, c.Health().Err, c.Version())
		}
	})
}
