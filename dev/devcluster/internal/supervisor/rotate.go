package supervisor

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/mirador-k8s/mirador/dev/devcluster/internal/pki"
)

// rotateTimeout is longer than the minute after which the API server looks at its
// files even if the system has not told it that they changed.
const rotateTimeout = 90 * time.Second

// rotate gives the API server a new serving certificate, of the other authority,
// and returns when it shows it. The server goes on meanwhile: connections that are
// open stay, and new ones get the new certificate.
func (c *Cluster) rotate(ctx context.Context) error {
	cert, err := pki.Rotate(c.data.pki(), serviceIP)
	if err != nil {
		return err
	}
	return c.poll(ctx, rotateTimeout, func(ctx context.Context) (string, error) {
		if shown, err := c.shownCertificate(ctx); err != nil || !bytes.Equal(shown, cert.Raw) {
			return "the API server to show its new certificate", nil
		}
		return "", nil
	})
}

// shownCertificate is the one that the API server shows to a new connection. Whether
// it can be trusted is not asked here: it is only compared.
func (c *Cluster) shownCertificate(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(c.state.Port)))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Raw, nil
}
