package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

const kubeconfigHead = `apiVersion: v1
kind: Config
current-context: eu
clusters:
- {name: c, cluster: {server: "https://127.0.0.1:6443", certificate-authority: ca.crt}}
- {name: other, cluster: {server: "https://127.0.0.1:7443"}}
contexts:
- {name: eu, context: {cluster: c, user: u}}
- {name: us, context: {cluster: other, user: plugin}}
users:
- {name: plugin, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: login, interactiveMode: Never}}}
`

func TestFilesNamedByAKubeconfigAreInlined(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "ca.crt"), "authority")
	write(t, filepath.Join(dir, "client.crt"), "certificate")
	write(t, filepath.Join(dir, "client.key"), "key")
	write(t, filepath.Join(dir, "token"), "word\n")
	path := write(t, filepath.Join(dir, "config"), kubeconfigHead+
		"- {name: u, user: {client-certificate: client.crt, client-key: client.key, tokenFile: token}}\n")
	b, err := inlined(path, "")
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := clientcmd.Load(b)
	if err != nil {
		t.Fatal(err)
	}
	c, u := cfg.Clusters["c"], cfg.AuthInfos["u"]
	if c == nil || u == nil || len(cfg.Clusters) != 1 || len(cfg.AuthInfos) != 1 || len(cfg.Contexts) != 1 {
		t.Fatalf("the result does not have exactly the parts that the context uses: %d clusters, %d users",
			len(cfg.Clusters), len(cfg.AuthInfos))
	}
	for what, got := range map[string]string{
		"authority": string(c.CertificateAuthorityData), "certificate": string(u.ClientCertificateData),
		"key": string(u.ClientKeyData), "word": u.Token,
		"": c.CertificateAuthority + u.ClientCertificate + u.ClientKey + u.TokenFile,
	} {
		if got != what {
			t.Errorf("got %q, want %q", got, what)
		}
	}
}

func TestKubeconfigWithAPluginIsRefusedWithTheReason(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "config"), kubeconfigHead+"- {name: u, user: {token: s3cr3t}}\n")
	broken := write(t, filepath.Join(dir, "broken"), "users: [{name: u, user: {token: s3cr3t}]")
	for _, c := range []struct{ path, context, want string }{
		{path, "us", "service account"},
		{path, "none", "get-contexts"},
		{path, "", "certificates"}, // ca.crt does not exist
		{broken, "", "it is not a kubeconfig"},
		{filepath.Join(dir, "none"), "", "there is no such file"},
	} {
		_, err := inlined(c.path, c.context)
		if ExitCode(err) != exitUsage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, context %q: %v; want a usage error with %q", c.path, c.context, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("the error contains a token: %v", err)
		}
	}
}
