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

// A virtual machine's host gives its processors to others at times; the kernel counts this stolen time, in which
// something wanted to run and could not. Figures measured then describe the host, not the code.

// calmShare is how much of a trial's CPU time may be stolen before it counts as disturbed.
const calmShare = 0.05

func disturbed(stolen float64) bool { return stolen > calmShare }

// ticks are the processors' busy and stolen times since boot.
type ticks struct{ busy, stolen float64 }

// readTicks reads them; on a kernel that does not count stolen time it is zero.
func readTicks() ticks {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return ticks{}
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return parseTicks(line)
}

// parseTicks parses the line with the sum over all processors: cpu user nice system idle iowait irq softirq steal …
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

// stolenSince returns the stolen share of the requested CPU time.
func (t ticks) stolenSince(before ticks) float64 {
	stolen := t.stolen - before.stolen
	asked := stolen + t.busy - before.busy
	if stolen <= 0 || asked <= 0 {
		return 0
	}
	return stolen / asked
}

// stolenNow uses all processors for a moment and returns the stolen share: on an idle machine it cannot be seen.
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

// tooMuch is the stolen share above which waiting is better: a trial would take longer than the wait, and its figures
// would be useless.
const tooMuch = 0.25

// waitForCalm waits while much CPU time is stolen, as long as the run's patience lasts.
func (r *runner) waitForCalm(ctx context.Context) {
	const pause = 5 * time.Second
	for r.waited < r.o.Patience {
		share := r.stolen()
		if share <= tooMuch {
			return
		}
		r.say("the host takes %s of the CPU time: waiting, %s of %s", percent(share), r.waited, r.o.Patience)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		r.waited += pause
	}
}
