package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// progress writes one moving line to a terminal, or a line now and then to
// anything else.
type progress struct {
	out      io.Writer
	name     string
	start    time.Time
	last     time.Time
	done     int
	total    int
	terminal bool
}

const quiet = 10 * time.Second

func newProgress(out *os.File, name string, now time.Time) *progress {
	st, err := out.Stat()
	return &progress{out: out, name: name, start: now, terminal: err == nil && st.Mode()&os.ModeCharDevice != 0}
}

// say begins a new stage.
func (p *progress) say(stage string) { p.print(stage) }

// step notes one package compiled, or with "" that there is still life.
func (p *progress) step(pkg string) {
	if pkg != "" {
		p.done++
	}
	wait := quiet
	if p.terminal {
		wait = 100 * time.Millisecond
	}
	if pkg != "" && time.Since(p.last) >= wait {
		p.print(fmt.Sprintf("[%4d/%d] %s", p.done, p.total, pkg))
	}
}

func (p *progress) print(what string) {
	p.last = time.Now()
	at := time.Since(p.start).Round(time.Second)
	if p.terminal {
		fmt.Fprintf(p.out, "\r\x1b[K%s %5s  %.100s", p.name, at, what)
		return
	}
	fmt.Fprintf(p.out, "%s %5s  %s\n", p.name, at, what)
}

func (p *progress) close() {
	if p.terminal {
		fmt.Fprintln(p.out)
	}
}
