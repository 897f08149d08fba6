package informertest

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Pipe serves s over in-memory connections and returns a config for them. Everything above the connection is real: an
// http.Server, an http.Transport, HTTP/1.1. All waiting is on channels, conditions and timers, so inside a synctest
// bubble time is fake; server and pipe must then be made inside the bubble, and stop be called before it ends. stop
// cuts every connection and returns when all handlers have ended.
func Pipe(s *Server) (cfg *rest.Config, stop func()) {
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	transport := &http.Transport{DialContext: l.dial, DisableCompression: true, MaxIdleConnsPerHost: 16}
	end := serveOn(s, l)
	return &rest.Config{Host: "http://informertest.invalid", Transport: transport, QPS: -1}, func() {
		end()
		transport.CloseIdleConnections()
	}
}

// pipeListener accepts in-memory connections.
type pipeListener struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := newPipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "dial", Net: "pipe", Addr: pipeAddr{}, Err: errRefused}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept waits for the next connection.
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and refuses later connections.
func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr names the listener.
func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "informertest.invalid:80" }

// pipeBuffer is how many bytes a pipe buffers before a write blocks, like a socket's buffer.
const pipeBuffer = 64 << 10

// stream is one direction of a connection.
type stream struct {
	mu   sync.Mutex
	cond *sync.Cond
	data []byte
	// ended says that no more will be written, dead that the reading end is closed.
	ended, dead bool
}

func newStream() *stream {
	s := &stream{}
	s.cond = sync.NewCond(&s.mu)
	return s
}

// pipeConn is one end of a connection.
type pipeConn struct {
	in, out         *stream
	readBy, writeBy deadline
}

func newPipe() (a, b *pipeConn) {
	x, y := newStream(), newStream()
	return &pipeConn{in: x, out: y}, &pipeConn{in: y, out: x}
}

// deadline is the deadline of one direction; it wakes the goroutines that wait on its stream. The stream's lock guards
// it.
type deadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func (d *deadline) set(s *stream, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.at = at
	if !at.IsZero() && time.Until(at) > 0 {
		d.timer = time.AfterFunc(time.Until(at), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.cond.Broadcast()
		})
	}
	s.cond.Broadcast()
}

// Read returns the buffered bytes and waits for at least one.
func (c *pipeConn) Read(b []byte) (int, error) {
	s := c.in
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.dead:
			return 0, net.ErrClosed
		case c.readBy.passed():
			return 0, os.ErrDeadlineExceeded
		case len(s.data) > 0:
			n := copy(b, s.data)
			s.data = s.data[n:]
			if len(s.data) == 0 {
				s.data = nil
			}
			s.cond.Broadcast()
			return n, nil
		case s.ended:
			return 0, io.EOF
		case len(b) == 0:
			return 0, nil
		}
		s.cond.Wait()
	}
}

// Write buffers the bytes and waits while the buffer is full.
func (c *pipeConn) Write(b []byte) (int, error) {
	s := c.out
	s.mu.Lock()
	defer s.mu.Unlock()
	written := 0
	for {
		switch {
		case s.ended:
			return written, net.ErrClosed
		case s.dead:
			return written, io.ErrClosedPipe
		case c.writeBy.passed():
			return written, os.ErrDeadlineExceeded
		case len(b) == 0:
			return written, nil
		}
		if n := min(pipeBuffer-len(s.data), len(b)); n > 0 {
			s.data = append(s.data, b[:n]...)
			b, written = b[n:], written+n
			s.cond.Broadcast()
			continue
		}
		s.cond.Wait()
	}
}

// Close ends both directions. What was written before can still be read.
func (c *pipeConn) Close() error {
	c.SetDeadline(time.Time{})
	c.in.mu.Lock()
	c.in.dead, c.in.data = true, nil
	c.in.cond.Broadcast()
	c.in.mu.Unlock()
	c.out.mu.Lock()
	c.out.ended = true
	c.out.cond.Broadcast()
	c.out.mu.Unlock()
	return nil
}

// LocalAddr names this end.
func (c *pipeConn) LocalAddr() net.Addr { return pipeAddr{} }

// RemoteAddr names the other end.
func (c *pipeConn) RemoteAddr() net.Addr { return pipeAddr{} }

// SetDeadline bounds reads and writes.
func (c *pipeConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline bounds reads; a deadline in the past ends a waiting read.
func (c *pipeConn) SetReadDeadline(t time.Time) error {
	c.readBy.set(c.in, t)
	return nil
}

// SetWriteDeadline bounds writes.
func (c *pipeConn) SetWriteDeadline(t time.Time) error {
	c.writeBy.set(c.out, t)
	return nil
}
