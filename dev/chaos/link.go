package chaos

import (
	"context"
	"net"
	"sync"
	"time"
)

// link is one connection through the proxy.
type link struct {
	client, server *net.TCPConn
	ctx            context.Context
	cancel         context.CancelFunc

	mu     sync.Mutex
	frozen direction
}

func newLink(ctx context.Context, client, server *net.TCPConn) *link {
	l := &link{client: client, server: server}
	l.ctx, l.cancel = context.WithCancel(ctx)
	return l
}

// run passes data in both directions until one end closes, or the link is cut.
func (l *link) run(p *faultProxy) {
	defer l.cancel()
	// Blocked reads and writes return when the link ends.
	defer context.AfterFunc(l.ctx, func() {
		l.client.Close()
		l.server.Close()
	})()
	var up sync.WaitGroup
	up.Go(func() { l.pump(p, toServer, l.client, l.server) })
	l.pump(p, toClient, l.server, l.client)
	up.Wait()
}

// pump passes data one way. When one direction ends, the link ends, as for TLS. Only a frozen link outlives its ends:
// half open means that neither end notices.
func (l *link) pump(p *faultProxy, way direction, from, to *net.TCPConn) {
	buf := make([]byte, 32<<10)
	for {
		imp, _ := p.now()
		n, err := from.Read(buf[:pieceSize(imp, len(buf))])
		if n > 0 && l.isFrozen(way) {
			continue // lost
		}
		if n > 0 && !l.wait(p, n) {
			return
		}
		if n > 0 && !l.isFrozen(way) {
			if _, err := to.Write(buf[:n]); err != nil {
				l.end()
				return
			}
		}
		if err != nil {
			l.end()
			return
		}
	}
}

// pieceSize returns a small size at a low bandwidth, so that data trickles.
func pieceSize(w impairment, most int) int {
	if w.bytesPerSecond <= 0 {
		return most
	}
	return min(most, max(1, w.bytesPerSecond/10))
}

// wait delays a piece of n bytes as the impairment says. It returns false if the link ended meanwhile.
func (l *link) wait(p *faultProxy, n int) bool {
	began := time.Now()
	for {
		imp, changed := p.now()
		due := imp.latency
		if imp.bytesPerSecond > 0 {
			due += time.Duration(n) * time.Second / time.Duration(imp.bytesPerSecond)
		}
		left := due - time.Since(began)
		if !imp.silent && left <= 0 {
			return l.ctx.Err() == nil
		}
		var over <-chan time.Time
		if !imp.silent {
			over = time.After(left)
		}
		select {
		case <-l.ctx.Done():
			return false
		case <-changed: // compute the delay again
		case <-over:
		}
	}
}

// end ends the link unless it is frozen: then it stays open until it is cut.
func (l *link) end() {
	l.mu.Lock()
	frozen := l.frozen != 0
	l.mu.Unlock()
	if frozen {
		<-l.ctx.Done()
		return
	}
	l.cancel()
}

// cut ends the link at once; data in flight is lost, and both ends see a reset.
func (l *link) cut() {
	_ = l.client.SetLinger(0)
	_ = l.server.SetLinger(0)
	l.cancel()
}

func (l *link) freeze(way direction) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frozen |= way
}

func (l *link) isFrozen(way direction) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.frozen&way != 0
}
