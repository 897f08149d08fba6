package fleet

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// dialer tracks the connections to a cluster and closes them when it leaves. Transports
// dial in the background and keep the connections: without the dialer, one that was being
// opened when the cluster left would stay open for minutes.
type dialer struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu    sync.Mutex
	conns map[*trackedConn]struct{}
	ended bool
}

type trackedConn struct {
	net.Conn
	of *dialer
}

var errEnded = errors.New("the cluster has left")

func newDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) *dialer {
	if dial == nil {
		dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	return &dialer{dial: dial, conns: map[*trackedConn]struct{}{}}
}

// DialContext opens a connection, unless the cluster has left meanwhile.
func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	k := &trackedConn{Conn: conn, of: d}
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
func (k *trackedConn) Close() error {
	k.of.mu.Lock()
	delete(k.of.conns, k)
	k.of.mu.Unlock()
	return k.Conn.Close()
}

// end closes all connections, and makes DialContext fail.
func (d *dialer) end() {
	d.mu.Lock()
	d.ended = true
	conns := d.conns
	d.conns = map[*trackedConn]struct{}{}
	d.mu.Unlock()
	for k := range conns {
		_ = k.Conn.Close() // an error changes nothing: the connection is not used again
	}
}
