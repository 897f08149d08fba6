package pki

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
)

// Rotate replaces the API server's serving certificate and key by new ones, signed by the authority that did not sign
// the current one. It returns the new certificate, so that the caller can wait until the server uses it.
func Rotate(d Dir, apiServerIP net.IP) (*x509.Certificate, error) {
	present, _, err := load(d.Cert(Serving), d.Key(Serving))
	if err != nil {
		return nil, fmt.Errorf("rotate the serving certificate: %w", err)
	}
	signer, err := loadAuthority(d.CA(), d.CAKey())
	if err == nil && present.CheckSignatureFrom(signer.cert) == nil {
		signer, err = loadAuthority(d.NextCA(), d.NextCAKey())
	}
	if err != nil {
		return nil, fmt.Errorf("rotate the serving certificate: %w", err)
	}
	if err := d.issue(Serving, serving(apiServerIP), signer); err != nil {
		return nil, fmt.Errorf("rotate the serving certificate: %w", err)
	}
	cert, _, err := load(d.Cert(Serving), d.Key(Serving))
	return cert, err
}

func loadAuthority(certPath, keyPath string) (*authority, error) {
	cert, key, err := load(certPath, keyPath)
	if err != nil {
		return nil, err
	}
	return &authority{cert, key}, nil
}

// load reads a certificate that issue or newAuthority wrote, and its key.
func load(certPath, keyPath string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	pair, err := tls.LoadX509KeyPair(certPath, keyPath)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s and its key: %w", certPath, err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, nil, fmt.Errorf("read %s: the key is a %T, not one that this program made", keyPath, pair.PrivateKey)
	}
	return pair.Leaf, key, nil
}
