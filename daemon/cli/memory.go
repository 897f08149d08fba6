package cli

import (
	"context"
	"net"
	"sync"
)

// inMemory is a listener within this process. It opens no port.
type inMemory struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newInMemory() *inMemory {
	return &inMemory{conns: make(chan net.Conn), done: make(chan struct{})}
}

// Accept waits for the next connection.
func (l *inMemory) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and dial.
func (l *inMemory) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr returns a placeholder.
func (l *inMemory) Addr() net.Addr { return inMemoryAddr{} }

// dial connects to the listener.
func (l *inMemory) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.done:
	case <-ctx.Done():
	}
	here.Close()
	there.Close()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return nil, net.ErrClosed
}

type inMemoryAddr struct{}

// Network returns the kind of address.
func (inMemoryAddr) Network() string { return "memory" }

// String returns the address as a text.
func (inMemoryAddr) String() string { return "memory" }
