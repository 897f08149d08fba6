package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/mirador-k8s/mirador/dev/testcluster"
)

var everything = labels.Everything()

// pair is a certificate for this machine and one more name, and its authority.
type pair struct {
	ca        []byte
	cert, key string // files
}

const otherName = "mirror.test"

func certificate(t *testing.T) *pair { return certificateFor(t, "mirador") }

// certificateFor returns a certificate for a server and a client, with a common name and organizations.
func certificateFor(t *testing.T, name string, organizations ...string) *pair {
	t.Helper()
	dir := t.TempDir()
	p := &pair{cert: filepath.Join(dir, "tls.crt"), key: filepath.Join(dir, "tls.key")}
	sign := func(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		check(t, err)
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		if parent == nil {
			parent, signer = template, key
		}
		der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
		check(t, err)
		cert, err := x509.ParseCertificate(der)
		check(t, err)
		return cert, key
	}
	ca,
		caKey := sign(&x509.Certificate{SerialNumber: big.NewInt(1),
		Subject: pkix.Name{CommonName: "test authority"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil, nil)
	leaf,
		key := sign(&x509.Certificate{SerialNumber: big.NewInt(2),
		Subject:  pkix.Name{CommonName: name, Organization: organizations},
		DNSNames: []string{otherName}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}, ca, caKey)
	encode := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	p.ca = encode("CERTIFICATE", ca.Raw)
	der, err := x509.MarshalECPrivateKey(key)
	check(t, err)
	check(t, os.WriteFile(p.cert, encode("CERTIFICATE", leaf.Raw), 0o600))
	check(t, os.WriteFile(p.key, encode("EC PRIVATE KEY", der), 0o600))
	return p
}

const token = "a-token-that-nobody-should-ever-see-0123456789"

func TestListeningForOtherMachinesNeedsACertificateAndAToken(t *testing.T) {
	t.Parallel()
	p, dir := certificate(t), t.TempDir()
	tokens, short := filepath.Join(dir, "token"), filepath.Join(dir, "short")
	check(t, os.WriteFile(tokens, []byte(token+"\n"), 0o600))
	check(t, os.WriteFile(short, []byte("secret-hunter2\n"), 0o600))
	for _, args := range [][]string{
		{"--listen", "0.0.0.0:0"},
		{"--listen", ":0"},
		{"--listen", "[::]:0"},
		{"--listen", "192.0.2.1:0"},
		{"--listen", otherName + ":0"},
		{"--listen", "0.0.0.0:0", "--token-file", tokens},
		{"--listen", "0.0.0.0:0", "--tls-cert", p.cert, "--tls-key", p.key},
		{"--listen", "0.0.0.0:0", "--tls-cert", p.cert, "--token-file", tokens},
		{"--listen", "0.0.0.0:0", "--tls-cert", p.cert, "--tls-key", p.key, "--token-file", short},
		{"--listen", "0.0.0.0:0", "--tls-cert", p.cert, "--tls-key", p.key, "--token-file", filepath.Join(dir, "none")},
	} {
		code, said := refused(t, append(args, "--folder", dir)...)
		if code != exitUsage || !strings.HasPrefix(said, "mirador: ") || strings.Contains(said, token[:16]) ||
			strings.Contains(said, "hunter2") {
			t.Errorf("%q: exit code %d, and %s", args, code, said)
		}
	}
}

// guarded starts a daemon with TLS and a token. setToken writes the file of its token.
func guarded(t *testing.T, cluster *testcluster.Cluster) (d *daemon, cfg *rest.Config, setToken func(string)) {
	t.Helper()
	p, dir := certificate(t), t.TempDir()
	tokens, config := filepath.Join(dir, "token"), filepath.Join(dir, "config")
	setToken = func(token string) { check(t, os.WriteFile(tokens, []byte(token+"\n"), 0o600)) }
	setToken(token)
	check(t, os.WriteFile(config, kubeconfig(t, cluster, "guarded"), 0o600))
	cfg = &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: p.ca}, BearerToken: token}
	d = begin(t, httpClient(t, cfg), "--listen", "0.0.0.0:0", "--tls-cert", p.cert, "--tls-key", p.key,
		"--token-file", tokens,
		"--kubeconfig", config, "--allow-host", otherName)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(d.at, "https://"))
	check(t, err)
	d.at = "https://127.0.0.1:" + port
	cfg.Host = d.at
	d.ready(t, d.members(t)...)
	return d, cfg, setToken
}

func TestOnlyClientsWithTheTokenAreServedOverTLS(t *testing.T) {
	t.Parallel()
	cluster := testcluster.Start(t, testcluster.WithoutControllers())
	d, cfg, setToken := guarded(t, cluster)
	name := d.members(t)[0]
	base := "/clusters/" + name

	// kubectl, with the token and the authority in its kubeconfig.
	file := filepath.Join(t.TempDir(), "config")
	check(t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"m": {Server: d.at + base, CertificateAuthorityData: cfg.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"m": {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{"m": {Cluster: "m", AuthInfo: "m"}},
		CurrentContext: "m"}, file))
	want := cluster.Kubectl(t, "get", "clusterroles", "-o", "yaml")
	if got := cluster.Kubectl(t, "--kubeconfig", file, "get", "clusterroles", "-o", "yaml"); got != want {
		t.Errorf("kubectl shows\n%.500s\nand the cluster has\n%.500s", got, want)
	}

	// A stock informer, over HTTP/2.
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	for _, at := range []string{base, "/fleet"} {
		mine := rest.CopyConfig(cfg)
		mine.Host = d.at + at
		k, err := kubernetes.NewForConfigAndClient(mine, httpClient(t, mine))
		check(t, err)
		f := informers.NewSharedInformerFactory(k, 0)
		roles := f.Rbac().V1().ClusterRoles()
		lister := roles.Lister()
		f.Start(ctx.Done())
		f.WaitForCacheSync(ctx.Done())
		got, err := lister.List(everything)
		check(t, err)
		if n := strings.Count(want, "\n  kind: ClusterRole\n"); len(got) != n || n < 10 {
			t.Errorf("an informer on %s has %d of %d", at, len(got), n)
		}
		defer f.Shutdown()
	}
	defer cancel() // runs before the wait for the informers

	d.strangers(t, cfg, base)
	bare := rest.CopyConfig(cfg)
	bare.BearerToken = ""
	d.reloads(t, httpClient(t, bare), setToken)
	said := d.stop(t) + d.said(t)
	for _, part := range []string{token, token[8:24]} {
		if strings.Contains(said, part) {
			t.Errorf("the daemon's log shows the token:\n%s", said)
		}
	}
	secrets(t, "the daemon's log", said, kubeconfig(t, cluster, "guarded"))
	if !strings.Contains(said, "TLS handshake error") {
		t.Errorf("the log does not have the client without TLS:\n%s", said)
	}
}

// strangers sends requests without the token, and checks that no answer contains it.
func (d *daemon) strangers(t *testing.T, cfg *rest.Config, base string) {
	t.Helper()
	bare := rest.CopyConfig(cfg)
	bare.BearerToken = ""
	client := httpClient(t, bare)
	paths := []string{"/clusters", "/clusters?watch=true", "/metrics", "/readyz?verbose", "/fleet/api/v1/pods", base,
		base + "/api", base + "/api/v1/namespaces",
		base + "/api/v1/namespaces?watch=true", base + "/api/v1/namespaces/default", base + "/openapi/v3", base + "/version",
		"/nonsense", base + "/api/v1/nonsense",
		base + "/api/v1/namespaces?labelSelector=a+b", base + "/api/v1/namespaces?where=" + token[:8],
		base + "/api/v1/namespaces/none"}
	for _, auth := range []string{"", "Bearer " + token[1:], "Bearer " + token + "x", "Bearer", "Bearer ",
		"Basic " + token, token, "bearer " + strings.ToUpper(token), "Bearer  " + token} {
		for _, path := range paths {
			code, _, body := d.request(t, client, http.MethodGet, path, auth)
			if code != http.StatusUnauthorized || strings.Contains(body, token[8:24]) {
				t.Errorf("%s with %q is answered %d: %.200s", path, auth, code, body)
			}
		}
		for method, path := range map[string]string{http.MethodPost: "/clusters", http.MethodDelete: base} {
			if code, _, body := d.request(t, client, method, path, auth); code != http.StatusUnauthorized {
				t.Errorf("%s %s with %q is answered %d: %.200s", method, path, auth, code, body)
			}
		}
	}
	// a browser sends no token when it loads the page
	for _, path := range []string{"/healthz", "/livez", "/readyz", "/"} {
		if code, _, body := d.request(t, client, http.MethodGet, path, ""); code != http.StatusOK ||
			strings.Contains(body, token[8:24]) {
			t.Errorf("%s is answered %d: %.200s", path, code, body)
		}
	}
	for _, path := range paths {
		if strings.Contains(path, "watch") {
			continue
		}
		code, headers, body := d.request(t, client, http.MethodGet, path, "Bearer "+token)
		if code == http.StatusUnauthorized || strings.Contains(headers+body, token[8:24]) {
			t.Errorf("%s with the token is answered %d: %.200s", path, code, body)
		}
	}
	// Clients that do not trust the authority, that do not use TLS, and that use another host name.
	if _, err := http.Get(d.at + "/healthz"); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a client that does not know the authority gets %v", err)
	}
	r, err := http.NewRequest(http.MethodGet, strings.Replace(d.at, "https", "http", 1)+"/clusters", nil)
	check(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := plain(t).Do(r)
	check(t, err)
	b, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest || strings.Contains(string(b), token[8:24]) {
		t.Errorf("without TLS: %d %s", resp.StatusCode, b)
	}
	for host, want := range map[string]int{otherName: http.StatusOK, "evil.test": http.StatusForbidden,
		"10.0.0.1": http.StatusForbidden} {
		r, err := http.NewRequest(http.MethodGet, d.at+"/", nil)
		check(t, err)
		r.Host = host
		resp, err := client.Do(r)
		check(t, err)
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("with the host %s it answers %d", host, resp.StatusCode)
		}
	}
}

func (d *daemon) request(t *testing.T, client *http.Client, method, path, auth string) (code int,
	headers, body string) {
	t.Helper()
	r, err := http.NewRequest(method, d.at+path, nil)
	check(t, err)
	if auth != "" {
		r.Header.Set("Authorization", auth)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(r)
	check(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	check(t, err)
	return resp.StatusCode, fmt.Sprint(resp.Header), string(b)
}
