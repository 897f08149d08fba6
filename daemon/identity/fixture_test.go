package identity

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apiserver/pkg/authentication/user"
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

// ca is an authority of the test.
type ca struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         string
}

func newCA(t testing.TB, name string) *ca {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	check(t, err)
	certificate, err := x509.ParseCertificate(der)
	check(t, err)
	return &ca{certificate, key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))}
}

// sign returns a certificate for clients and for a server at example.com and its subdomains.
func (c *ca) sign(t testing.TB, name string, groups ...string) tls.Certificate {
	t.Helper()
	return c.signFor(t, time.Hour, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, name,
		groups...)
}

func (c *ca) signFor(t testing.TB, age time.Duration, usage []x509.ExtKeyUsage, name string,
	groups ...string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:   pkix.Name{CommonName: name, Organization: groups},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(age), ExtKeyUsage: usage,
		KeyUsage: x509.KeyUsageDigitalSignature, DNSNames: []string{"example.com", "*.example.com"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, c.certificate, key.Public(), c.key)
	check(t, err)
	leaf, err := x509.ParseCertificate(der)
	check(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
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
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners == nil {
		n.listeners = map[string]*listener{}
	}
	l := &listener{connections: make(chan net.Conn), closed: make(chan struct{})}
	n.listeners[address] = l
	return l
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

// issuerServer is an OIDC issuer that serves its discovery document and its keys over HTTPS.
type issuerServer struct {
	url string
	ca  *ca

	mu        sync.Mutex
	keys      map[string]crypto.Signer
	discovery int // requests
	fetches   int // of the keys
	named     string
}

var rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func newECKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	return key
}

// newIssuer returns an issuer that is not reachable yet.
func newIssuer(t testing.TB, host string, keys map[string]crypto.Signer) *issuerServer {
	t.Helper()
	return &issuerServer{url: "https://" + host, ca: newCA(t, "ca of "+host), keys: keys}
}

// serve makes the issuer reachable until the test ends.
func (s *issuerServer) serve(t testing.TB, l net.Listener) {
	t.Helper()
	web := &http.Server{Handler: s, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{s.ca.sign(t, "issuer")}}}
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

func (s *issuerServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		s.discovery++
		named := s.url
		if s.named != "" {
			named = s.named
		}
		json.NewEncoder(w).Encode(map[string]string{"issuer": named, "jwks_uri": s.url + "/keys"})
	case "/keys":
		s.fetches++
		var set []map[string]string
		for _, id := range slices.Sorted(maps.Keys(s.keys)) {
			set = append(set, publicKey(id, s.keys[id]))
		}
		json.NewEncoder(w).Encode(map[string]any{"keys": set})
	default:
		http.NotFound(w, r)
	}
}

func (s *issuerServer) counts() (discovery, fetches int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.discovery, s.fetches
}

func (s *issuerServer) setKeys(keys map[string]crypto.Signer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = keys
}

func publicKey(id string, key crypto.Signer) map[string]string {
	text := base64.RawURLEncoding.EncodeToString
	switch key := key.Public().(type) {
	case *rsa.PublicKey:
		return map[string]string{"kid": id, "kty": "RSA", "use": "sig", "n": text(key.N.Bytes()),
			"e": text(big.NewInt(int64(key.E)).Bytes())}
	case *ecdsa.PublicKey:
		point, err := key.Bytes() // 4, x, y
		if err != nil {
			panic(err)
		}
		return map[string]string{"kid": id, "kty": "EC", "use": "sig", "crv": "P-256", "x": text(point[1:33]),
			"y": text(point[33:])}
	}
	panic("unknown kind of key")
}

// token returns a token of the issuer that is valid for an hour, with changed and added claims.
func (s *issuerServer) token(t testing.TB, id string, claims map[string]any) string {
	t.Helper()
	all := map[string]any{"iss": s.url, "aud": "mirador", "sub": "alice", "iat": time.Now().Unix(),
		"exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(all, claims)
	s.mu.Lock()
	defer s.mu.Unlock()
	return signToken(t, id, s.keys[id], all)
}

func signToken(t testing.TB, id string, key crypto.Signer, claims map[string]any) string {
	t.Helper()
	algorithm := "none"
	switch key.(type) {
	case *rsa.PrivateKey:
		algorithm = "RS256"
	case *ecdsa.PrivateKey:
		algorithm = "ES256"
	}
	encode := func(v any) string {
		b, err := json.Marshal(v)
		check(t, err)
		return base64.RawURLEncoding.EncodeToString(b)
	}
	text := encode(map[string]string{"alg": algorithm, "kid": id, "typ": "JWT"}) + "." + encode(claims)
	sum := sha256.Sum256([]byte(text))
	var signature []byte
	switch key := key.(type) {
	case *rsa.PrivateKey:
		var err error
		signature, err = rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
		check(t, err)
	case *ecdsa.PrivateKey:
		r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
		check(t, err)
		signature = append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// configuration returns an AuthenticationConfiguration; each issuer is a part of the list jwt.
func configuration(issuers ...string) string {
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n"
	for _, one := range issuers {
		text += one
	}
	return text
}

// entry returns the issuer as an element of jwt, with claimMappings and rules in rest.
func (s *issuerServer) entry(rest string) string {
	text := "- issuer:\n    url: " + s.url + "\n    audiences: [mirador]\n    certificateAuthority: |\n"
	for line := range strings.Lines(s.ca.pem) {
		text += "      " + line
	}
	return text + rest
}

const plainMapping = `  claimMappings:
    username: {claim: sub, prefix: "oidc:"}
    groups: {claim: groups, prefix: "oidc:"}
`
