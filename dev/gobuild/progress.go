package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// progress rewrites one line on a terminal, or prints a line now and then elsewhere, even while go prints nothing: a
// silent minute looks like a hang.
type progress struct {
	out      io.Writer
	name     string
	start    time.Time
	terminal bool
	total    int
	stopped  chan struct{}
	ended    sync.WaitGroup

	mu    sync.Mutex
	stage string
	done  int
	pkg   string
}

func newProgress(out *os.File, name string, now time.Time) *progress {
	st, err := out.Stat()
	p := &progress{out: out, name: name, start: now, stopped: make(chan struct{}),
		terminal: err == nil && st.Mode()&os.ModeCharDevice != 0}
	p.ended.Go(p.tick)
	return p
}

// tick prints periodically until close is called.
func (p *progress) tick() {
	every := 10 * time.Second
	if p.terminal {
		every = 200 * time.Millisecond
	}
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-p.stopped:
			return
		case <-t.C:
			p.mu.Lock()
			p.print()
			p.mu.Unlock()
		}
	}
}

// say starts a new stage.
func (p *progress) say(stage string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stage, p.done, p.pkg = stage, 0, ""
	p.print()
}

// step counts one compiled package.
func (p *progress) step(pkg string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	p.pkg = pkg
}

func (p *progress) print() {
	what := p.stage
	if p.pkg != "" {
		what = fmt.Sprintf("[%4d/%d] %s", min(p.done, p.total), p.total, p.pkg)
	}
	at := time.Since(p.start).Round(time.Second)
	if p.terminal {
		fmt.Fprintf(p.out, "\r\x1b[K%s %5s  %.100s", p.name, at, what)
	} else {
		fmt.Fprintf(p.out, "%s %5s  %s\n", p.name, at, what)
	}
}

func (p *progress) close() {
	close(p.stopped)
	p.ended.Wait()
	if p.terminal {
		fmt.Fprintln(p.out)
	}
}
