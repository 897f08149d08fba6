package load

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// progress shows how far the work is: as a bar on a terminal, as a line every two seconds elsewhere.
type progress struct {
	out      io.Writer
	terminal bool
	what     string
	before   int // done before the start
	total    int // 0: open-ended
	begun    time.Time
	count    atomic.Int64
	ended    time.Time
	once     sync.Once
	quit     chan struct{}
	gone     chan struct{}
}

const (
	barInterval  = 200 * time.Millisecond
	lineInterval = 2 * time.Second
	barWidth     = 30
)

func newProgress(out io.Writer, terminal bool, what string, before, total int) *progress {
	p := &progress{out: out, terminal: terminal, what: what, before: before, total: total,
		begun: time.Now(), quit: make(chan struct{}), gone: make(chan struct{})}
	go p.show()
	return p
}

func (p *progress) add(n int) { p.count.Add(int64(n)) }

// done returns how much is done, including what was done before the start.
func (p *progress) done() int { return p.before + int(p.count.Load()) }

func (p *progress) elapsed() time.Duration {
	if p.ended.IsZero() {
		return time.Since(p.begun)
	}
	return p.ended.Sub(p.begun)
}

// rate returns how much was done per second since the start.
func (p *progress) rate() float64 { return float64(p.count.Load()) / max(p.elapsed().Seconds(), 1e-3) }

// stop ends the display; the figures that p returns afterwards are final.
func (p *progress) stop() {
	p.once.Do(func() {
		close(p.quit)
		<-p.gone
		p.ended = time.Now()
	})
}

func (p *progress) show() {
	defer close(p.gone)
	interval := lineInterval
	if p.terminal {
		interval = barInterval
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if p.terminal {
				fmt.Fprintf(p.out, "\r%s\x1b[K", p.line())
			} else {
				fmt.Fprintln(p.out, p.line())
			}
		case <-p.quit:
			if p.terminal {
				fmt.Fprint(p.out, "\r\x1b[K") // the summary takes the bar's place
			}
			return
		}
	}
}

func (p *progress) line() string {
	done, rate := p.done(), p.rate()
	if p.total == 0 {
		return fmt.Sprintf("%d %s, %.0f/s", done, p.what, rate)
	}
	left := "?"
	if rate > 0 {
		left = (time.Duration(float64(p.total-done)/rate) * time.Second).String()
	}
	text := fmt.Sprintf("%d/%d %s, %.0f/s, %s left", done, p.total, p.what, rate, left)
	if !p.terminal {
		return text
	}
	full := min(barWidth, barWidth*done/p.total)
	return fmt.Sprintf("[%s%s] %s", strings.Repeat("=", full), strings.Repeat(" ", barWidth-full), text)
}
