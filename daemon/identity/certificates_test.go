package identity

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/dev/testissuer"
)

func TestCertificatesGiveUserAndGroups(t *testing.T) {
	f := newChainFixture(t)
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	wantUser(t, f.Authenticator, with(request(), f.clients.SignFor(t, time.Hour, client, "carol", "qa", "dev")),
		`carol "" [qa dev system:authenticated]`)
	wantRefused(t, f.Authenticator, with(request(), f.clients.SignFor(t, -time.Minute, client, "carol")), "expired")
	wantRefused(t, f.Authenticator, with(request(), f.clients.SignFor(t, time.Hour,
		[]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, "carol")), "incompatible key usage")
	wantRefused(t, f.Authenticator, with(request(), f.unknown.Sign(t, "carol")), "unknown authority")
	// The front proxy is not a user.
	wantRefused(t, f.Authenticator, with(request(), f.proxies.Sign(t, "proxy")), "unknown authority")
}

func TestHeadersCountOnlyWithTheProxysCertificate(t *testing.T) {
	f := newChainFixture(t)
	headers := func() *http.Request {
		return request("X-Remote-User: dave", "X-Remote-Uid: 9", "X-Remote-Group: dev", "X-Remote-Group: ops",
			"X-Remote-Extra-Scopes: read")
	}
	const dave = `dave "9" [dev ops system:authenticated] map[scopes:[read]]`
	wantUser(t, f.Authenticator, with(headers(), f.proxies.Sign(t, "proxy")), dave)
	wantUser(t, f.Authenticator, with(headers(), f.proxies.Sign(t, "other-proxy")), dave)

	wantRefused(t, f.Authenticator, headers(), "")
	wantRefused(t, f.Authenticator, with(headers(), f.proxies.Sign(t, "not-the-proxy")), "not in the allowed list")
	wantRefused(t, f.Authenticator, with(headers(), f.unknown.Sign(t, "proxy")), "unknown authority")
	wantUser(t, f.Authenticator, with(headers(), f.clients.Sign(t, "proxy")), `proxy "" [system:authenticated]`)
	bob := headers()
	bob.Header.Set("Authorization", "Bearer "+bobsToken)
	wantUser(t, f.Authenticator, bob, `bob "1002" [system:authenticated]`)
}

func TestANewAuthorityCountsAtTheNextRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, next := testissuer.NewAuthority(t, "old"), testissuer.NewAuthority(t, "next")
		path := write(t, "ca.pem", old.PEM)
		a, err := New(Options{ClientCAFile: path})
		check(t, err)
		run(t, a)
		const carol = `carol "" [system:authenticated]`
		before, after := old.Sign(t, "carol"), next.Sign(t, "carol")
		wantUser(t, a, with(request(), before), carol)
		wantRefused(t, a, with(request(), after), "unknown authority")

		check(t, os.WriteFile(path, []byte(old.PEM+next.PEM), 0o600))
		time.Sleep(filesEvery)
		synctest.Wait()
		wantUser(t, a, with(request(), before), carol)
		wantUser(t, a, with(request(), after), carol)

		check(t, os.WriteFile(path, []byte(next.PEM), 0o600))
		time.Sleep(filesEvery)
		synctest.Wait()
		wantRefused(t, a, with(request(), before), "unknown authority")

		check(t, os.WriteFile(path, []byte(brokenPEM), 0o600))
		time.Sleep(filesEvery)
		synctest.Wait()
		wantUser(t, a, with(request(), after), carol)
	})
}

// A real server with TLS asks for certificates, names the current authorities, and speaks HTTP/2.
func TestAServerWithTLSSeesTheUser(t *testing.T) {
	clients, servers := testissuer.NewAuthority(t, "clients"), testissuer.NewAuthority(t, "servers")
	a, err := New(Options{TokenAuthFile: write(t, "tokens.csv", bobsToken+",bob,1002\n"),
		ClientCAFile: write(t, "ca.pem", clients.PEM)})
	check(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	web := &http.Server{TLSConfig: a.TLS(&tls.Config{Certificates: []tls.Certificate{servers.Sign(t, "server")}}),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			u, ok, err := a.Authenticate(r)
			if !ok {
				http.Error(w, fmt.Sprint(err), http.StatusUnauthorized)
				return
			}
			fmt.Fprint(w, r.Proto, " ", u.GetName())
		})}
	ended := make(chan error)
	go func() { ended <- web.ServeTLS(listener, "", "") }()
	t.Cleanup(func() { web.Close(); <-ended })

	roots := x509.NewCertPool()
	roots.AddCert(servers.Certificate)
	get := func(token string, asked *int, certificates ...tls.Certificate) string {
		t.Helper()
		transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots,
			GetClientCertificate: func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
				*asked = len(info.AcceptableCAs)
				if len(certificates) == 0 {
					return &tls.Certificate{}, nil
				}
				return &certificates[0], nil
			}}}
		defer transport.CloseIdleConnections()
		r, err := http.NewRequest(http.MethodGet, "https://"+listener.Addr().String(), nil)
		check(t, err)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := (&http.Client{Transport: transport}).Do(r)
		check(t, err)
		defer resp.Body.Close()
		text := make([]byte, 100)
		n, _ := resp.Body.Read(text)
		return fmt.Sprint(resp.StatusCode, " ", string(text[:n]))
	}
	var asked int
	if got, want := get("", &asked, clients.Sign(t, "carol")), "200 HTTP/2.0 carol"; got != want || asked != 1 {
		t.Errorf("with a certificate the answer is %q and %d authorities are named; want %q and 1", got, asked, want)
	}
	if got, want := get(bobsToken, &asked), "200 HTTP/2.0 bob"; got != want {
		t.Errorf("with a token and no certificate the answer is %q; want %q", got, want)
	}
	if got, want := get("", &asked), "401 <nil>\n"; got != want {
		t.Errorf("without credentials the answer is %q; want %q", got, want)
	}
	both := testissuer.NewAuthority(t, "more")
	check(t, a.useClientCA(t.Context(), []byte(clients.PEM+both.PEM)))
	if got, want := get("", &asked, both.Sign(t, "erin")), "200 HTTP/2.0 erin"; got != want || asked != 2 {
		t.Errorf("after a new authority the answer is %q and %d authorities are named; want %q and 2", got, asked, want)
	}
}

func TestWithoutAuthoritiesNoCertificateIsAskedFor(t *testing.T) {
	a, err := New(Options{})
	check(t, err)
	config := a.TLS(&tls.Config{ServerName: "x"})
	if config.ClientAuth != tls.NoClientCert || config.GetConfigForClient != nil || config.ServerName != "x" {
		t.Errorf("the configuration asks for certificates: %+v", config)
	}
}
