package harness

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A virtual machine's host gives its processors to others at times; the kernel counts the time for which something
// wanted to run and could not. What is measured then is the host.

// calmShare is how much of the time that a trial asked for may be taken before it counts as disturbed.
const calmShare = 0.05

func disturbed(stolen float64) bool { return stolen > calmShare }

// ticks are what the processors did since the machine was started.
type ticks struct{ busy, stolen float64 }

// readTicks reads them where the kernel tells; nothing was ever stolen where it does not.
func readTicks() ticks {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return ticks{}
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return parseTicks(line)
}

// parseTicks reads the line that sums up all processors: cpu user nice system idle iowait irq softirq steal …
func parseTicks(line string) (t ticks) {
	for i, field := range strings.Fields(line) {
		n, _ := strconv.ParseFloat(field, 64)
		switch i {
		case 1, 2, 3, 6, 7:
			t.busy += n
		case 8:
			t.stolen = n
		}
	}
	return t
}

// stolenSince is the share of the time that was asked for and not given.
func (t ticks) stolenSince(before ticks) float64 {
	stolen := t.stolen - before.stolen
	asked := stolen + t.busy - before.busy
	if stolen <= 0 || asked <= 0 {
		return 0
	}
	return stolen / asked
}

// stolenNow asks for all processors for a moment, and tells how much of that it did not get: without asking one does
// not see it.
func stolenNow() float64 {
	before, began := readTicks(), time.Now()
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for time.Since(began) < 200*time.Millisecond {
			}
		})
	}
	all.Wait()
	return readTicks().stolenSince(before)
}

// tooMuch is what others take when it is better to wait: a trial would take longer than the wait, and would tell
// nothing.
const tooMuch = 0.25

// waitForCalm waits while others take much of the processors, as long as the run's patience lasts.
func (r *runner) waitForCalm(ctx context.Context) {
	const pause = 5 * time.Second
	for r.waited < r.o.Patience {
		share := r.stolen()
		if share <= tooMuch {
			return
		}
		r.say("others take %s of the processors: waiting, %s of %s", percent(share), r.waited, r.o.Patience)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		r.waited += pause
	}
}
