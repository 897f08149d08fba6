package testissuer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// Authority signs certificates.
type Authority struct {
	Certificate *x509.Certificate
	PEM         string // the certificate

	key *ecdsa.PrivateKey
}

// NewAuthority returns an authority with a common name.
func NewAuthority(t testing.TB, name string) *Authority {
	t.Helper()
	key := NewECKey(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	check(t, err)
	certificate, err := x509.ParseCertificate(der)
	check(t, err)
	return &Authority{certificate, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), key}
}

// Sign returns a certificate that is valid for an hour, for clients and for a server at localhost, 127.0.0.1,
// example.com and its subdomains.
func (a *Authority) Sign(t testing.TB, name string, groups ...string) tls.Certificate {
	t.Helper()
	return a.SignFor(t, time.Hour, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, name,
		groups...)
}

// SignFor is Sign with a time until which the certificate is valid, and with its usages.
func (a *Authority) SignFor(t testing.TB, age time.Duration, usage []x509.ExtKeyUsage, name string,
	groups ...string) tls.Certificate {
	t.Helper()
	key := NewECKey(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:   pkix.Name{CommonName: name, Organization: groups},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(age), ExtKeyUsage: usage,
		KeyUsage: x509.KeyUsageDigitalSignature, DNSNames: []string{"localhost", "example.com", "*.example.com"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.Certificate, key.Public(), a.key)
	check(t, err)
	leaf, err := x509.ParseCertificate(der)
	check(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// NewECKey returns a key for ES256.
func NewECKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	return key
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
