package identity

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
)

// authority has the certificates of authorities.
type authority struct {
	certificates []*x509.Certificate
	pool         *x509.CertPool
}

func (a *Authenticator) useClientCA(_ context.Context, content []byte) error {
	ca, err := parseAuthority(content)
	if err != nil {
		return err
	}
	if err := a.checkProxyName(ca, a.proxyCA.Load()); err != nil {
		return err
	}
	a.clientCA.Store(ca)
	a.acceptCAs()
	return nil
}

func (a *Authenticator) useProxyCA(_ context.Context, content []byte) error {
	ca, err := parseAuthority(content)
	if err != nil {
		return err
	}
	if err := a.checkProxyName(a.clientCA.Load(), ca); err != nil {
		return err
	}
	a.proxyCA.Store(ca)
	a.acceptCAs()
	return nil
}

// parseAuthority reads certificates in PEM. Other blocks are skipped.
func parseAuthority(content []byte) (*authority, error) {
	ca := &authority{pool: x509.NewCertPool()}
	for number := 1; ; number++ {
		var block *pem.Block
		if block, content = pem.Decode(content); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("PEM block %d is not a certificate: %w", number, err)
		}
		ca.certificates = append(ca.certificates, certificate)
		ca.pool.AddCert(certificate)
	}
	if len(ca.certificates) == 0 {
		return nil, errors.New("it has no certificates in PEM; write the certificates of the authorities, each from " +
			"-----BEGIN CERTIFICATE----- to -----END CERTIFICATE-----")
	}
	return ca, nil
}

// checkProxyName returns an error if every user with a certificate could act as the front proxy and name any other
// user: an authority signs for both, and the proxy's certificate may have any name. Both may be nil.
func (a *Authenticator) checkProxyName(client, proxy *authority) error {
	if !a.anyProxyName || client == nil || proxy == nil {
		return nil
	}
	for _, certificate := range client.certificates {
		if slices.ContainsFunc(proxy.certificates, certificate.Equal) {
			return fmt.Errorf("the authority %q is one of clients and of the front proxy, so that every client could name "+
				"any user in headers; give the front proxy an authority of its own, or give the allowed names of its certificate",
				certificate.Subject)
		}
	}
	return nil
}

// acceptCAs publishes the authorities that TLS names to clients.
func (a *Authenticator) acceptCAs() {
	pool := x509.NewCertPool()
	for _, ca := range []*authority{a.clientCA.Load(), a.proxyCA.Load()} {
		if ca == nil {
			continue
		}
		for _, certificate := range ca.certificates {
			pool.AddCert(certificate)
		}
	}
	a.acceptedCAs.Store(pool)
}

// verifyOptions returns how a client certificate is verified with the current certificates of an authority.
func verifyOptions(ca *atomic.Pointer[authority]) x509request.VerifyOptionFunc {
	return func() (x509.VerifyOptions, bool) {
		opts := x509request.DefaultVerifyOptions()
		opts.Roots = ca.Load().pool
		return opts, true
	}
}

// TLS returns a copy of a server's configuration that asks clients for a certificate, if an authenticator needs one. A
// handshake succeeds with every certificate or none: Authenticate verifies the certificate, at each request, so that a
// new authority counts for open connections too. For each handshake the client is told the current authorities.
func (a *Authenticator) TLS(base *tls.Config) *tls.Config {
	config := base.Clone()
	if a.acceptedCAs.Load() == nil {
		return config
	}
	config.ClientAuth = tls.RequestClientCert
	if len(config.NextProtos) == 0 {
		// http.Server adds these to its own copy, which is not the one that a handshake uses.
		config.NextProtos = []string{"h2", "http/1.1"}
	}
	perHandshake := config.Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		current := perHandshake.Clone()
		current.ClientCAs = a.acceptedCAs.Load()
		return current, nil
	}
	return config
}
