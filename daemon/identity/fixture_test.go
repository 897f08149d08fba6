package identity

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/dev/testissuer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write writes a file into a folder of the test and returns its path.
func write(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	check(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// request returns a request with header lines ("Name: value").
func request(lines ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/api/v1/pods", nil)
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	return r
}

// with adds a client certificate to a request.
func with(r *http.Request, certificate tls.Certificate) *http.Request {
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{certificate.Leaf}}
	return r
}

func bearer(token string) *http.Request { return request("Authorization: Bearer " + token) }

// describe formats a user as "name uid [groups]" with the extra values at the end.
func describe(u user.Info) string {
	text := fmt.Sprintf("%s %q %v", u.GetName(), u.GetUID(), u.GetGroups())
	extra := maps.Clone(u.GetExtra())
	delete(extra, user.CredentialIDKey)
	if len(extra) > 0 {
		text += fmt.Sprint(" ", extra)
	}
	return text
}

// wantUser fails unless the request is one of a user, as describe formats it.
func wantUser(t testing.TB, a *Authenticator, r *http.Request, want string) {
	t.Helper()
	u, ok, err := a.Authenticate(r)
	if err != nil || !ok {
		t.Errorf("the request is not authenticated (error: %v); want %s", err, want)
		return
	}
	if got := describe(u); got != want {
		t.Errorf("the user is %s; want %s", got, want)
	}
}

// wantRefused fails unless the request is not authenticated for a reason; "" is that there is no credential.
func wantRefused(t testing.TB, a *Authenticator, r *http.Request, reason string) {
	t.Helper()
	u, ok, err := a.Authenticate(r)
	if ok || u != nil {
		t.Errorf("the request is one of %s; want none, because %q", describe(u), reason)
		return
	}
	if reason == "" && err != nil || reason != "" && (err == nil || !strings.Contains(err.Error(), reason)) {
		t.Errorf("the error is %v; want one with %q", err, reason)
	}
}

// journal is a log that can be read while it is written.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

// run runs an Authenticator until the test ends, which must be in a bubble of synctest.
func run(t *testing.T, a *Authenticator) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- a.Run(ctx) }()
	synctest.Wait()
	t.Cleanup(func() {
		cancel()
		check(t, <-ended)
	})
}

// network connects clients and servers of a bubble by address.
type network struct {
	mu        sync.Mutex
	listeners map[string]*listener
	dials     map[string]int
}

func (n *network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[address]
	if n.dials == nil {
		n.dials = map[string]int{}
	}
	n.dials[address]++
	n.mu.Unlock()
	if l == nil {
		return nil, errors.New("connection refused")
	}
	client, server := net.Pipe()
	select {
	case l.connections <- newBufferedConn(server):
		return newBufferedConn(client), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (n *network) listen(address string) *listener {
	l := &listener{connections: make(chan net.Conn), closed: make(chan struct{})}
	n.set(address, l)
	return l
}

// set replaces what listens at an address; nil means nothing.
func (n *network) set(address string, l *listener) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners == nil {
		n.listeners = map[string]*listener{}
	}
	n.listeners[address] = l
}

// bufferedConn is a connection whose writes do not wait for the other side to read, as on a network.
type bufferedConn struct {
	net.Conn
	writes chan []byte
	once   sync.Once
	closed chan struct{}
}

func newBufferedConn(c net.Conn) *bufferedConn {
	b := &bufferedConn{Conn: c, writes: make(chan []byte, 1000), closed: make(chan struct{})}
	go b.send()
	return b
}

// send writes until the connection is closed, and then for a second what is left.
func (b *bufferedConn) send() {
	defer b.Conn.Close()
	for {
		select {
		case p := <-b.writes:
			if _, err := b.Conn.Write(p); err != nil {
				return
			}
			continue
		default:
		}
		select {
		case p := <-b.writes:
			if _, err := b.Conn.Write(p); err != nil {
				return
			}
		case <-b.closed:
			return
		}
	}
}

func (b *bufferedConn) Write(p []byte) (int, error) {
	select {
	case <-b.closed:
		return 0, net.ErrClosed
	default:
	}
	b.writes <- bytes.Clone(p)
	return len(p), nil
}

func (b *bufferedConn) SetWriteDeadline(time.Time) error { return nil }

func (b *bufferedConn) SetDeadline(t time.Time) error { return b.SetReadDeadline(t) }

func (b *bufferedConn) Close() error {
	b.once.Do(func() {
		b.Conn.SetWriteDeadline(time.Now().Add(time.Second))
		b.Conn.SetReadDeadline(time.Now())
		close(b.closed)
	})
	return nil
}

type listener struct {
	connections chan net.Conn
	once        sync.Once
	closed      chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.connections:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *listener) Addr() net.Addr { return &net.TCPAddr{} }

// serve makes an issuer reachable until the test ends.
func serve(t testing.TB, issuer *testissuer.Issuer, l net.Listener) {
	t.Helper()
	web := &http.Server{Handler: issuer, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{issuer.Authority.Sign(t, "issuer")}}}
	ended := make(chan error)
	go func() { ended <- web.ServeTLS(l, "", "") }()
	t.Cleanup(func() {
		web.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		time.Sleep(time.Minute) // of the bubble: connections that end wait seconds for the other side
	})
}

const plainMapping = `  claimMappings:
    username: {claim: sub, prefix: "oidc:"}
    groups: {claim: groups, prefix: "oidc:"}
`
