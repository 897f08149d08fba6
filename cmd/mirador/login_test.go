package main

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/mirador-k8s/mirador/dev/testissuer"
)

// startIssuer serves an OIDC issuer over TLS, and returns it with a file of an authentication configuration that has
// it.
func startIssuer(t *testing.T) (issuer *testissuer.Issuer, config string) {
	t.Helper()
	issuer = testissuer.New(t, "", map[string]crypto.Signer{"k": testissuer.NewECKey(t)})
	web := httptest.NewUnstartedServer(issuer)
	web.TLS = &tls.Config{Certificates: []tls.Certificate{issuer.Authority.Sign(t, "issuer")}}
	web.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	web.StartTLS()
	t.Cleanup(web.Close)
	issuer.URL = web.URL
	config = filepath.Join(t.TempDir(), "authentication.yaml")
	check(t, os.WriteFile(config, []byte(testissuer.Configuration(issuer.Entry(`  claimMappings:
    username: {claim: sub, prefix: "oidc:"}
    groups: {claim: groups, prefix: "oidc:"}
`))), 0o600))
	return issuer, config
}

// The daemon as a whole: a browser logs in at an issuer, and its requests are those of the user, until it logs out.
func TestServeLogsUsersInAtAnIssuer(t *testing.T) {
	issuer, config := startIssuer(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	address := free.Addr().String()
	check(t, free.Close())
	at := "http://" + address
	issuer.SetLogins(testissuer.Logins{ClientID: "mirador", RedirectURI: at + "/login/callback", KeyID: "k",
		Claims: map[string]any{"sub": "alice", "groups": []string{"dev"}}, Lifetime: time.Hour})

	_, out, end := startServe(t, "--listen", address, "--authentication-config", config, "--login-client-id", "mirador")

	jar, err := cookiejar.New(nil)
	check(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(issuer.Authority.PEM))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	var visited []string
	browser := &http.Client{Jar: jar, Transport: transport,
		CheckRedirect: func(r *http.Request, _ []*http.Request) error {
			visited = append(visited, r.URL.String())
			return nil
		}}
	review := func(site string) (int, string) {
		t.Helper()
		r, err := http.NewRequest(http.MethodPost, at+"/fleet/apis/authentication.k8s.io/v1/selfsubjectreviews",
			strings.NewReader(`{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`))
		check(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Sec-Fetch-Site", site)
		resp, err := browser.Do(r)
		check(t, err)
		defer resp.Body.Close()
		var review authenticationv1.SelfSubjectReview
		if err := json.NewDecoder(resp.Body).Decode(&review); err != nil && resp.StatusCode == http.StatusCreated {
			t.Error(err)
		}
		return resp.StatusCode, review.Status.UserInfo.Username + " " + strings.Join(review.Status.UserInfo.Groups, ",")
	}
	if code, _ := review("same-origin"); code != http.StatusUnauthorized {
		t.Errorf("before the login: %d", code)
	}
	resp, err := browser.Get(at + "/login")
	check(t, err)
	resp.Body.Close()
	if len(visited) != 3 || !strings.HasPrefix(visited[0], issuer.URL+"/authorize?") ||
		!strings.HasPrefix(visited[1], at+"/login/callback?") || visited[2] != at+"/" {
		t.Fatalf("the browser visited %q", visited)
	}
	if code, u := review("same-origin"); code != http.StatusCreated || u != "oidc:alice oidc:dev,system:authenticated" {
		t.Errorf("after the login: %d %s", code, u)
	}
	if code, _ := review("cross-site"); code != http.StatusUnauthorized {
		t.Errorf("a request of another site: %d", code)
	}
	if code := logOut(t, browser, at, "cross-site"); code != http.StatusForbidden {
		t.Errorf("a logout by another site: %d", code)
	}
	if code := logOut(t, browser, at, "same-origin"); code != http.StatusNoContent {
		t.Errorf("the logout: %d", code)
	}
	if code, _ := review("same-origin"); code != http.StatusUnauthorized {
		t.Errorf("after the logout: %d", code)
	}
	transport.CloseIdleConnections()
	if code := end(); code != 0 {
		t.Errorf("exit code %d, and\n%s", code, out.b.String())
	}
}

func logOut(t *testing.T, browser *http.Client, at, site string) int {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, at+"/login/logout", nil)
	check(t, err)
	r.Header.Set("Sec-Fetch-Site", site)
	resp, err := browser.Do(r)
	check(t, err)
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	check(t, err)
	return resp.StatusCode
}

func TestBadLoginFlagsAreRefused(t *testing.T) {
	issuer, config := startIssuer(t)
	for want, args := range map[string][]string{
		"name one in the file of --authentication-config": {"--login-client-id", "mirador"},
		"are for --login-client-id; give it, too":         {"--login-url", "https://x"},
		"give it with --login-url": {"--login-client-id", "mirador", "--authentication-config", config, "--listen",
			"127.0.0.1:0"},
		"are mirador; add the client ID to them": {"--login-client-id", "other", "--authentication-config", config},
		"there are " + issuer.URL: {"--login-client-id", "mirador", "--authentication-config", config,
			"--login-issuer", "https://other.example.com"},
		"read the client secret": {"--login-client-id", "mirador", "--authentication-config", config,
			"--login-client-secret-file", "/absent"},
		"it must begin with https://": {"--login-client-id", "mirador", "--authentication-config", config, "--login-url",
			"http://mirror.example.com:8090", "--allow-host", "mirror.example.com"},
		"add --allow-host mirror.example.com": {"--login-client-id", "mirador", "--authentication-config", config,
			"--login-url", "https://mirror.example.com:8443", "--allow-host", "other.example.com"},
		`the URL of the page is "x"`: {"--login-client-id", "mirador", "--authentication-config", config,
			"--login-url", "x"},
	} {
		code, said := refused(t, append(args, "--folder", t.TempDir())...)
		if code != exitUsage || !strings.Contains(said, want) {
			t.Errorf("%q: exit code %d, and %s", args, code, said)
		}
	}
}
