package chaos

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// echo sends back every line of its connections, and counts the lines it received.
type echo struct {
	net.Listener
	mu    sync.Mutex
	lines []string
	conns map[net.Conn]struct{}
	wg    sync.WaitGroup
}

func startEcho(t *testing.T) *echo {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{Listener: l, conns: map[net.Conn]struct{}{}}
	e.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			e.mu.Lock()
			e.conns[conn] = struct{}{}
			e.mu.Unlock()
			e.wg.Go(func() { e.serve(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		e.mu.Lock()
		for c := range e.conns {
			c.Close()
		}
		e.mu.Unlock()
		e.wg.Wait()
	})
	return e
}

func (e *echo) serve(conn net.Conn) {
	defer conn.Close()
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		e.mu.Lock()
		e.lines = append(e.lines, lines.Text())
		e.mu.Unlock()
		if _, err := conn.Write([]byte(lines.Text() + "\n")); err != nil {
			return
		}
	}
}

func (e *echo) heard(line string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range e.lines {
		if l == line {
			return true
		}
	}
	return false
}

func startProxy(t *testing.T, target string) *faultProxy {
	t.Helper()
	p, err := listen(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// caller is a client of the echo server behind the proxy.
type caller struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func call(t *testing.T, p *faultProxy) *caller {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &caller{t, conn, bufio.NewReader(conn)}
}

func (c *caller) say(line string) {
	c.t.Helper()
	if _, err := c.conn.Write([]byte(line + "\n")); err != nil {
		c.t.Fatal(err)
	}
}

// hears waits for the line, with a timeout that only a bug exceeds.
func (c *caller) hears(line string) {
	c.t.Helper()
	if err := c.conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		c.t.Fatal(err)
	}
	got, err := c.in.ReadString('\n')
	if err != nil || strings.TrimSpace(got) != line {
		c.t.Fatalf("received %q, %v; want %q", got, err, line)
	}
}

// hearsNothing checks for a moment that nothing arrives; it may miss a late arrival, but not every time.
func (c *caller) hearsNothing() {
	c.t.Helper()
	if err := c.conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		c.t.Fatal(err)
	}
	got, err := c.in.ReadString('\n')
	var timeout net.Error
	if got != "" || !errors.As(err, &timeout) || !timeout.Timeout() {
		c.t.Fatalf("received %q, %v; want nothing", got, err)
	}
}

func TestProxyForwardsDataBothWays(t *testing.T) {
	p := startProxy(t, startEcho(t).Addr().String())
	a, b := call(t, p), call(t, p)
	a.say("from a")
	b.say("from b")
	a.hears("from a")
	b.hears("from b")
	if p.Accepted() != 2 || p.Open() != 2 {
		t.Errorf("%d connections were accepted and %d are open, want 2", p.Accepted(), p.Open())
	}
	long := strings.Repeat("x", 60<<10) // more than one piece
	a.say(long)
	a.hears(long)
}

func TestCutBreaksOnlyOpenConnections(t *testing.T) {
	p := startProxy(t, startEcho(t).Addr().String())
	c := call(t, p)
	c.say("before")
	c.hears("before")
	if n := p.Cut(); n != 1 {
		t.Errorf("%d connections were cut", n)
	}
	if _, err := c.in.ReadByte(); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("the client did not see a reset: %v", err)
	}
	again := call(t, p)
	again.say("after")
	again.hears("after")
}

func TestFrozenConnectionsStayOpenAndSilentInTheirDirection(t *testing.T) {
	for name, c := range map[string]struct {
		way     direction
		reaches bool // what the client sends reaches the server
	}{"up": {toServer, false}, "down": {toClient, true}, "both": {toServer | toClient, false}} {
		t.Run(name, func(t *testing.T) {
			server := startEcho(t)
			p := startProxy(t, server.Addr().String())
			old := call(t, p)
			old.say("before")
			old.hears("before")
			p.Freeze(c.way)
			old.say("during")
			old.hearsNothing()
			if server.heard("during") != c.reaches {
				t.Errorf("the server received it: %v", !c.reaches)
			}
			p.Set(impairment{}) // this does not unfreeze the connections
			old.hearsNothing()
			fresh := call(t, p)
			fresh.say("fresh")
			fresh.hears("fresh")
			if p.Open() != 2 {
				t.Errorf("%d connections are open, want 2", p.Open())
			}
		})
	}
}

func TestSilentProxyAcceptsAndHoldsDataBack(t *testing.T) {
	p := startProxy(t, startEcho(t).Addr().String())
	old := call(t, p)
	old.say("before")
	old.hears("before")
	p.Set(impairment{silent: true})
	fresh := call(t, p)
	old.say("old")
	fresh.say("fresh")
	old.hearsNothing()
	fresh.hearsNothing()
	p.Set(impairment{})
	old.hears("old")
	fresh.hears("fresh")
}

func TestSilentProxyAcceptsWithoutAServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	p := startProxy(t, l.Addr().String())
	p.Set(impairment{silent: true})
	call(t, p).hearsNothing()
}

func TestLatencyAndBandwidthDelayData(t *testing.T) {
	p := startProxy(t, startEcho(t).Addr().String())
	c := call(t, p)
	// The delay is far longer than the test, which ends only because the setting changes.
	for _, w := range []impairment{{latency: time.Hour}, {bytesPerSecond: 1}} {
		p.Set(w)
		line := strings.Repeat("y", 4000)
		c.say(line)
		c.hearsNothing()
		p.Set(impairment{})
		c.hears(line)
	}
	// Both directions are delayed once.
	began := time.Now()
	p.Set(impairment{latency: 20 * time.Millisecond})
	c.say("slow")
	c.hears("slow")
	if took := time.Since(began); took < 40*time.Millisecond {
		t.Errorf("two times 20 ms took %s", took)
	}
}

func TestProxyWithoutAServerClosesTheConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	conn, err := net.Dial("tcp", startProxy(t, l.Addr().String()).Addr())
	if err != nil {
		return // it was closed before the client's dial returned
	}
	defer conn.Close()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("received something without a server")
	}
}
