package fleet

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// dialer knows the connections to a cluster, and ends them with it. Transports dial in the
// background and keep what they get: without this, a connection that was under way when the
// cluster left would stay for minutes.
type dialer struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu    sync.Mutex
	conns map[*knownConn]struct{}
	ended bool
}

type knownConn struct {
	net.Conn
	of *dialer
}

var errEnded = errors.New("the cluster has left")

func newDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) *dialer {
	if dial == nil {
		dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	return &dialer{dial: dial, conns: map[*knownConn]struct{}{}}
}

// DialContext opens a connection, unless the cluster has ended meanwhile.
func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	k := &knownConn{Conn: conn, of: d}
	d.mu.Lock()
	ended := d.ended
	if !ended {
		d.conns[k] = struct{}{}
	}
	d.mu.Unlock()
	if ended {
		return nil, errors.Join(errEnded, conn.Close())
	}
	return k, nil
}

// Close closes one connection.
func (k *knownConn) Close() error {
	k.of.mu.Lock()
	delete(k.of.conns, k)
	k.of.mu.Unlock()
	return k.Conn.Close()
}

// end closes all connections, and those to come.
func (d *dialer) end() {
	d.mu.Lock()
	d.ended = true
	conns := d.conns
	d.conns = map[*knownConn]struct{}{}
	d.mu.Unlock()
	for k := range conns {
		_ = k.Conn.Close() // the other side sees it as well
	}
}
