package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
)

// The code of kube-apiserver logs by klog, whose lines have the format of the others.
func TestTheLogHasOneFormat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := filepath.Join(dir, "authentication.yaml")
	check(t, os.WriteFile(config, []byte(`apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {url: "https://127.0.0.1:1", audiences: [mirador]}
  claimMappings: {username: {claim: sub, prefix: ""}}
`), 0o600))
	d := begin(t, plain(t), "--listen", "127.0.0.1:0", "--folder", t.TempDir(), "--authentication-config", config,
		"--log-format", "json")
	until(t, func() string {
		if said := d.said(t); !strings.Contains(said, "oidc authenticator: initializing plugin") {
			return "the issuer is not in the log:\n" + said
		}
		return ""
	})
	d.stop(t)
	for line := range strings.Lines(d.said(t)) {
		var entry struct{ Time, Level, Msg string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Time == "" || entry.Level == "" || entry.Msg == "" {
			t.Errorf("%v in %q", err, line)
		}
	}
}

// A daemon with --token-auth-file and --client-ca-file answers a SelfSubjectReview with the user of each credential.
func TestServeKnowsTheUserOfEachCredential(t *testing.T) {
	p, dir := certificate(t), t.TempDir()
	tokens, users, authority := filepath.Join(dir, "token"), filepath.Join(dir, "users.csv"), filepath.Join(dir, "ca.crt")
	check(t, os.WriteFile(tokens, []byte(token), 0o600))
	check(t, os.WriteFile(users, []byte("static-token-of-alice,alice,1001,dev\n"), 0o600))
	client := certificateFor(t, "carol", "qa")
	check(t, os.WriteFile(authority, client.ca, 0o600))

	at, out, end := startServe(t, "--listen", "127.0.0.1:0", "--tls-cert", p.cert, "--tls-key", p.key, "--token-file",
		tokens, "--token-auth-file", users, "--client-ca-file", authority)
	defer func() {
		if code := end(); code != 0 {
			t.Errorf("exit code %d, and\n%s", code, out.b.String())
		}
	}()

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.ca)
	pair, err := tls.LoadX509KeyPair(client.cert, client.key)
	check(t, err)
	for _, c := range []struct {
		token        string
		certificates []tls.Certificate
		code         int
		user, groups string
	}{
		{"", nil, http.StatusUnauthorized, "", ""},
		{"static-token-of-mallory", nil, http.StatusUnauthorized, "", ""},
		{"static-token-of-alice", nil, http.StatusCreated, "alice", "dev,system:authenticated"},
		{"", []tls.Certificate{pair}, http.StatusCreated, "carol", "qa,system:authenticated"},
		{token, nil, http.StatusCreated, "mirador:token", "mirador:administrators,system:authenticated"},
	} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: c.certificates}}
		r, err := http.NewRequest(http.MethodPost, at+"/fleet/apis/authentication.k8s.io/v1/selfsubjectreviews",
			strings.NewReader(`{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`))
		check(t, err)
		r.Header.Set("Content-Type", "application/json")
		if c.token != "" {
			r.Header.Set("Authorization", "Bearer "+c.token)
		}
		resp, err := (&http.Client{Transport: transport}).Do(r)
		check(t, err)
		var review authenticationv1.SelfSubjectReview
		err = json.NewDecoder(resp.Body).Decode(&review)
		resp.Body.Close()
		transport.CloseIdleConnections()
		got := review.Status.UserInfo
		if c.code == http.StatusCreated {
			check(t, err)
		}
		if resp.StatusCode != c.code || got.Username != c.user || strings.Join(got.Groups, ",") != c.groups {
			t.Errorf("token %q: %d, %q in %q; want %d, %q in %q", c.token, resp.StatusCode, got.Username, got.Groups, c.code,
				c.user, c.groups)
		}
	}
}
