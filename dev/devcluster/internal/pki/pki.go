package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// The users that get a client certificate, by the name of their files.
const (
	Admin             = "admin"
	ControllerManager = "controller-manager"
	Scheduler         = "scheduler"
)

// clients holds the identity that each client certificate proves.
var clients = map[string]pkix.Name{
	Admin:             {CommonName: "devcluster-admin", Organization: []string{"system:masters"}},
	ControllerManager: {CommonName: "system:kube-controller-manager"},
	Scheduler:         {CommonName: "system:kube-scheduler"},
}

// lifetime is long because a kept data folder may be resumed at any time, and
// nothing outside this machine ever trusts the authority.
const lifetime = 10 * 365 * 24 * time.Hour

// completeFile is written last; its presence means that the set is complete.
const completeFile = "complete"

// Dir is a folder that holds one cluster's certificates and keys.
type Dir string

// CA is the path of the authority's certificate.
func (d Dir) CA() string { return d.path("ca.crt") }

// CAKey is the path of the authority's key.
func (d Dir) CAKey() string { return d.path("ca.key") }

// NextCA is the path of the second authority's certificate. All components trust it from the start, so that Rotate can
// switch to it without breaking any of them.
func (d Dir) NextCA() string { return d.path("next-ca.crt") }

// NextCAKey is the path of the second authority's key.
func (d Dir) NextCAKey() string { return d.path("next-ca.key") }

// Bundle is the path of the certificates of both authorities, the first one first.
func (d Dir) Bundle() string { return d.path("bundle.crt") }

// Cert is the path of a certificate: Serving or a client's.
func (d Dir) Cert(name string) string { return d.path(name + ".crt") }

// Key is the path of a certificate's key.
func (d Dir) Key(name string) string { return d.path(name + ".key") }

// ServiceAccountKey is the path of the key that signs service-account tokens.
func (d Dir) ServiceAccountKey() string { return d.path("service-account.key") }

// ServiceAccountPub is the path of the key that verifies those tokens.
func (d Dir) ServiceAccountPub() string { return d.path("service-account.pub") }

func (d Dir) path(name string) string { return filepath.Join(string(d), name) }

// Serving names the API server's own certificate.
const Serving = "apiserver"

// Ensure creates the complete set in folder d unless it exists already. The folder must exist. apiServerIP is the API
// server's address inside the cluster, which its certificate must cover.
func Ensure(d Dir, apiServerIP net.IP) error {
	if _, err := os.Stat(d.path(completeFile)); err == nil {
		return d.ensureBundle()
	}
	ca, err := newAuthority("devcluster-ca", d.CA(), d.CAKey())
	if err != nil {
		return fmt.Errorf("make the cluster's authority in %s: %w", d, err)
	}
	if err := d.issue(Serving, serving(apiServerIP), ca); err != nil {
		return err
	}
	for name, subject := range clients {
		client := &x509.Certificate{Subject: subject, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
		if err := d.issue(name, client, ca); err != nil {
			return err
		}
	}
	if err := d.newServiceAccountKey(); err != nil {
		return fmt.Errorf("make the service-account key in %s: %w", d, err)
	}
	if err := os.Remove(d.Bundle()); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("make the bundle of authorities in %s: %w", d, err)
	}
	if err := d.ensureBundle(); err != nil {
		return err
	}
	return os.WriteFile(d.path(completeFile), nil, 0o600)
}

func serving(apiServerIP net.IP) *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc.cluster.local"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, apiServerIP},
	}
}

// ensureBundle creates the second authority and the bundle unless they exist: a folder made by an older version has
// none.
func (d Dir) ensureBundle() error {
	fail := func(err error) error { return fmt.Errorf("make the bundle of authorities in %s: %w", d, err) }
	if _, err := os.Stat(d.Bundle()); err == nil {
		return nil
	}
	if _, err := newAuthority("devcluster-next-ca", d.NextCA(), d.NextCAKey()); err != nil {
		return fail(err)
	}
	var both []byte
	for _, path := range []string{d.CA(), d.NextCA()} {
		b, err := os.ReadFile(path)
		if err != nil {
			return fail(err)
		}
		both = append(both, b...)
	}
	// The bundle gets its name only when it is complete: its presence means that all of this is done.
	if err := os.WriteFile(d.Bundle()+".new", both, 0o600); err != nil {
		return fail(err)
	}
	if err := os.Rename(d.Bundle()+".new", d.Bundle()); err != nil {
		return fail(err)
	}
	return nil
}

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(name, certPath, keyPath string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	if err := stamp(template); err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	if err := writePEM(certPath, "CERTIFICATE", der); err != nil {
		return nil, err
	}
	return &authority{cert, key}, writeKey(keyPath, key)
}

func (d Dir) issue(name string, template *x509.Certificate, ca *authority) error {
	wrap := func(err error) error {
		if err == nil {
			return nil
		}
		return fmt.Errorf("make the certificate %s: %w", d.Cert(name), err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return wrap(err)
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	if err := stamp(template); err != nil {
		return wrap(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	if err != nil {
		return wrap(err)
	}
	if err := writePEM(d.Cert(name), "CERTIFICATE", der); err != nil {
		return wrap(err)
	}
	return wrap(writeKey(d.Key(name), key))
}

func (d Dir) newServiceAccountKey() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	pub, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	if err := writePEM(d.ServiceAccountPub(), "PUBLIC KEY", pub); err != nil {
		return err
	}
	return writeKey(d.ServiceAccountKey(), key)
}

// stamp sets a certificate's serial number and validity. It starts an hour ago, so that setting the clock back a
// little does not break the cluster.
func stamp(c *x509.Certificate) error {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return err
	}
	c.SerialNumber = serial
	c.NotBefore = time.Now().Add(-time.Hour)
	c.NotAfter = time.Now().Add(lifetime)
	return nil
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
