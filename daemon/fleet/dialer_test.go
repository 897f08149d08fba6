package fleet

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
)

func TestConnectionsAreClosedWhenTheirClusterLeaves(t *testing.T) {
	var far []net.Conn
	d := newDialer(func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		far = append(far, there)
		return here, nil
	})
	first, err := d.DialContext(t.Context(), "tcp", "192.0.2.1:1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.DialContext(t.Context(), "tcp", "192.0.2.1:1"); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil || len(d.conns) != 1 {
		t.Errorf("%d connections are tracked after one of two was closed: %v", len(d.conns), err)
	}
	d.end()
	if _, err := d.DialContext(t.Context(), "tcp", "192.0.2.1:1"); !errors.Is(err, errEnded) {
		t.Errorf("dialing after the end: %v", err)
	}
	for i, c := range far {
		if _, err := c.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("connection %d is open: %v", i, err)
		}
	}
}
