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

// rotateTimeout is longer than the minute after which the API server rereads its files even without a notification of
// a change.
const rotateTimeout = 90 * time.Second

// rotate gives the API server a new serving certificate, from the other authority, and returns when the server uses
// it. The server keeps running: open connections stay, and new ones get the new certificate.
func (c *Cluster) rotate(ctx context.Context) error {
	cert, err := pki.Rotate(c.data.pki(), serviceIP)
	if err != nil {
		return err
	}
	return c.poll(ctx, rotateTimeout, func(ctx context.Context) (string, error) {
		if shown, err := c.shownCertificate(ctx); err != nil || !bytes.Equal(shown, cert.Raw) {
			return "the API server to use its new certificate", nil
		}
		return "", nil
	})
}

// shownCertificate returns the certificate that the API server presents to a new connection. It is only compared, so
// it is not verified.
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
