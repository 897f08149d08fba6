package pki

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

var serviceIP = net.IPv4(172, 20, 0, 1)

func ensure(t *testing.T) Dir {
	t.Helper()
	d := Dir(t.TempDir())
	if err := Ensure(d, serviceIP); err != nil {
		t.Fatal(err)
	}
	return d
}

// leaf reads a certificate and its key, which must match.
func leaf(t *testing.T, d Dir, name string) *x509.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(d.Cert(name), d.Key(name))
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

func roots(t *testing.T, d Dir) *x509.CertPool {
	t.Helper()
	b, err := os.ReadFile(d.Bundle())
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		t.Fatal("the authority's certificate cannot be read")
	}
	return pool
}

func TestServingCertificateCoversTheLoopbackNamesAndNoOthers(t *testing.T) {
	d := ensure(t)
	cert := leaf(t, d, Serving)
	for name, good := range map[string]bool{"127.0.0.1": true, "localhost": true, "172.20.0.1": true, "192.0.2.1": false,
		"example.com": false} {
		_, err := cert.Verify(x509.VerifyOptions{DNSName: name, Roots: roots(t, d)})
		if (err == nil) != good {
			t.Errorf("for %s: %v", name, err)
		}
	}
}

func TestClientCertificatesProveTheirUsers(t *testing.T) {
	d := ensure(t)
	for name, group := range map[string]string{Admin: "system:masters", ControllerManager: "", Scheduler: ""} {
		cert := leaf(t, d, name)
		_, err := cert.Verify(x509.VerifyOptions{Roots: roots(t, d),
			KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := append(cert.Subject.Organization, "")[0]; got != group {
			t.Errorf("%s is in group %q, want %q", name, got, group)
		}
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots(t, d)}); err == nil {
			t.Errorf("%s is valid for a server", name)
		}
	}
}

func TestAuthoritiesOfTwoClustersDoNotTrustEachOther(t *testing.T) {
	a, b := ensure(t), ensure(t)
	_, err := leaf(t, a, Admin).Verify(x509.VerifyOptions{Roots: roots(t, b),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	if err == nil {
		t.Error("one cluster trusts the other's administrator")
	}
}

func TestCompleteSetIsKeptAndAnIncompleteOneIsReplaced(t *testing.T) {
	d := ensure(t)
	before := leaf(t, d, Admin).SerialNumber
	if err := Ensure(d, serviceIP); err != nil {
		t.Fatal(err)
	}
	if leaf(t, d, Admin).SerialNumber.Cmp(before) != 0 {
		t.Error("a complete set was replaced")
	}
	if err := os.Remove(d.path(completeFile)); err != nil {
		t.Fatal(err)
	}
	if err := Ensure(d, serviceIP); err != nil {
		t.Fatal(err)
	}
	if leaf(t, d, Admin).SerialNumber.Cmp(before) == 0 {
		t.Error("an incomplete set was kept")
	}
}

func TestRotationSwitchesToTheOtherAuthorityAndBack(t *testing.T) {
	d := ensure(t)
	before := leaf(t, d, Serving)
	seen := map[string]bool{before.SerialNumber.String(): true}
	for _, issuer := range []string{"devcluster-next-ca", "devcluster-ca"} {
		cert, err := Rotate(d, serviceIP)
		if err != nil {
			t.Fatal(err)
		}
		if now := leaf(t, d, Serving); !now.Equal(cert) || seen[now.SerialNumber.String()] {
			t.Error("the certificate in the folder is not a new one")
		}
		seen[cert.SerialNumber.String()] = true
		if cert.Issuer.CommonName != issuer {
			t.Errorf("signed by %s, want %s", cert.Issuer.CommonName, issuer)
		}
		for _, name := range []string{"127.0.0.1", "localhost", "172.20.0.1"} {
			if _, err := cert.Verify(x509.VerifyOptions{DNSName: name, Roots: roots(t, d)}); err != nil {
				t.Errorf("for %s: %v", name, err)
			}
		}
	}
}

func TestFolderFromBeforeTheSecondAuthorityGetsOneAndKeepsTheRest(t *testing.T) {
	d := ensure(t)
	before := leaf(t, d, Admin).SerialNumber
	for _, path := range []string{d.NextCA(), d.NextCAKey(), d.Bundle()} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := Ensure(d, serviceIP); err != nil {
		t.Fatal(err)
	}
	if leaf(t, d, Admin).SerialNumber.Cmp(before) != 0 {
		t.Error("the certificates were replaced")
	}
	if cert, err := Rotate(d, serviceIP); err != nil || cert.Issuer.CommonName != "devcluster-next-ca" {
		t.Errorf("rotating to the new authority: %v, %v", cert, err)
	}
}

func TestFilesAreReadableByTheirOwnerOnly(t *testing.T) {
	d := ensure(t)
	config := filepath.Join(string(d), "kubeconfig")
	if err := d.WriteKubeconfig(config, "devcluster-x", Admin, "https://127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(string(d))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f.Name(), info.Mode(), err)
		}
	}
}

func TestKubeconfigHoldsAllThatAClientNeeds(t *testing.T) {
	d := ensure(t)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := d.WriteKubeconfig(path, "devcluster-x", Admin, "https://127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(string(d)); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://127.0.0.1:1" {
		t.Errorf("the host is %s", config.Host)
	}
	if _, err := tls.X509KeyPair(config.CertData, config.KeyData); err != nil {
		t.Errorf("the client certificate: %v", err)
	}
}
