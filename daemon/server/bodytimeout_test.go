package server

import (
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

// oneConn is a listener with one connection.
type oneConn struct {
	conns chan net.Conn
}

func (l *oneConn) Accept() (net.Conn, error) {
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l *oneConn) Close() error   { return nil }
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// The daemon closes a connection whose request body never ends, whether the handler reads the body or not.
func TestRequestWithoutItsBodyTimesOut(t *testing.T) {
	for _, request := range []string{
		"POST /clusters HTTP/1.1\r\nContent-Type: application/json\r\n",
		"POST /clusters/eu/api/v1/pods HTTP/1.1\r\n",
		"POST /fleet/apis/authorization.k8s.io/v1/selfsubjectaccessreviews HTTP/1.1\r\nContent-Type: application/json\r\n",
		"GET /healthz HTTP/1.1\r\n",
		"POST /clusters HTTP/1.1\r\nAuthorization: Bearer wrong\r\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			fl, err := fleet.New(fleet.Options{})
			if err != nil {
				t.Fatal(err)
			}
			srv, err := New(fl, Options{})
			if err != nil {
				t.Fatal(err)
			}
			here, there := net.Pipe()
			listener := &oneConn{conns: make(chan net.Conn, 1)}
			listener.conns <- there
			web := &http.Server{Handler: srv}
			ended := make(chan error, 1)
			go func() { ended <- web.Serve(listener) }()
			if _, err := io.WriteString(here, request+"Host: localhost\r\nContent-Length: 100\r\n\r\n{"); err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			if err := here.SetReadDeadline(begun.Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, here); err != nil || time.Since(begun) > 2*bodyTimeout {
				t.Errorf("%.60q is held for %v: %v", request, time.Since(begun), err)
			}
			here.Close()
			close(listener.conns)
			if err := web.Close(); err != nil {
				t.Error(err)
			}
			<-ended
		})
	}
}
