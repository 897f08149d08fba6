package informertest

import "sync"

// gate counts running handlers. Once shut, it admits no more of them and waits until all have left. A WaitGroup does
// not allow Add while another goroutine waits.
type gate struct {
	mu     sync.Mutex
	cond   *sync.Cond
	inside int
	closed bool
}

func newGate() *gate {
	g := &gate{}
	g.cond = sync.NewCond(&g.mu)
	return g
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.inside++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	g.cond.Broadcast()
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for g.inside > 0 {
		g.cond.Wait()
	}
}
