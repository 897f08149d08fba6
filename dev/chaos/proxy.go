package chaos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// impairment is what a proxy does to the bytes that pass. The zero value does nothing.
type impairment struct {
	// latency delays each piece of data.
	latency time.Duration
	// bytesPerSecond, if above 0, is how much passes on each connection and in each direction.
	bytesPerSecond int
	// silent holds all data back while it is set: connections are accepted, even without a server behind the proxy, and
	// nothing is sent on them.
	silent bool
}

// direction is a set of directions.
type direction uint8

// The directions, as the client sees them.
const (
	toServer direction = 1 << iota // from the client to the server
	toClient                       // from the server to the client
)

// faultProxy forwards TCP connections to one address without looking into them, so that TLS works. Its methods may be
// called at any time.
type faultProxy struct {
	listener net.Listener
	target   string
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup

	mu         sync.Mutex
	impairment impairment
	changed    chan struct{} // closed when the impairment changes
	links      map[*link]struct{}
	accepted   int
}

// listen starts a proxy to the target on a free port of the loopback address. It
// runs until Close.
func listen(target string) (*faultProxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start a proxy to %s: %w", target, err)
	}
	p := &faultProxy{listener: l, target: target, changed: make(chan struct{}), links: map[*link]struct{}{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.running.Go(p.accept)
	return p, nil
}

// Addr returns the proxy's address.
func (p *faultProxy) Addr() string { return p.listener.Addr().String() }

// Accepted returns how many connections were made to the proxy since its start.
func (p *faultProxy) Accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

// Open returns how many connections are open, including frozen ones.
func (p *faultProxy) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Set changes the impairment of open and new connections.
func (p *faultProxy) Set(w impairment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.impairment = w
	close(p.changed)
	p.changed = make(chan struct{})
}

// Cut resets every open connection on both sides. It returns how many there were.
func (p *faultProxy) Cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.cut()
	}
	return len(p.links)
}

// Freeze leaves every open connection half open: from now on nothing passes in that direction, and neither end
// notices. Unlike an impairment it cannot be undone; new connections are not affected. It returns how many
// connections it froze.
func (p *faultProxy) Freeze(way direction) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.freeze(way)
	}
	return len(p.links)
}

// Close closes the proxy and every connection, and returns when all its goroutines have ended.
func (p *faultProxy) Close() {
	p.cancel()
	p.listener.Close()
	p.Cut()
	p.running.Wait()
}

func (p *faultProxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue // the client has closed the connection already
		}
		p.mu.Lock()
		p.accepted++
		p.mu.Unlock()
		p.running.Go(func() { p.serve(conn.(*net.TCPConn)) })
	}
}

// serve connects a client with the target until either end closes.
func (p *faultProxy) serve(client *net.TCPConn) {
	defer client.Close()
	if !p.untilHeard() {
		return
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(p.ctx, "tcp", p.target)
	if err != nil {
		_ = client.SetLinger(0) // the client sees a reset, as without a proxy
		return
	}
	defer conn.Close()
	l := newLink(p.ctx, client, conn.(*net.TCPConn))
	p.mu.Lock()
	p.links[l] = struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.links, l)
		p.mu.Unlock()
	}()
	l.run(p)
}

// untilHeard waits until the proxy is not silent. It returns false if the proxy is closed first.
func (p *faultProxy) untilHeard() bool {
	for {
		imp, changed := p.now()
		if !imp.silent {
			return true
		}
		select {
		case <-changed:
		case <-p.ctx.Done():
			return false
		}
	}
}

// now returns the current impairment, and a channel that is closed at its next change.
func (p *faultProxy) now() (impairment, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.impairment, p.changed
}
