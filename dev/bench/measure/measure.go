// Package measure reads what a trial costs this process: live heap, its peak,
// resident memory, processor time, allocations, latencies.
package measure

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	liveHeap       = "/gc/heap/live:bytes"
	allocatedBytes = "/gc/heap/allocs:bytes"
)

func read(name string) uint64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// LiveHeap collects twice, so that finalizers and pools have had their turn, and
// returns the bytes that were found alive.
func LiveHeap() float64 {
	runtime.GC()
	runtime.GC()
	return float64(read(liveHeap))
}

// Settle makes the process one that has run for a while: it has been given so much memory by the system, and has it
// free. In one that has just begun and does not collect, a fifth of the time of what allocates is the kernel handing
// out pages, and less of it where more was thrown away before.
func Settle(bytes int) {
	const page = 4096
	room := make([]byte, bytes)
	for i := 0; i < len(room); i += page {
		room[i] = 1
	}
	runtime.KeepAlive(room)
	room = nil
	runtime.GC()
	runtime.GC()
}

// CPU is the processor time that this process has used.
func CPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // fails for a bad argument only
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Work is how long the processor works on f, which does everything on the goroutine that calls it. Unlike a clock on
// the wall it stands still while the host gives the processor to others: with 3% of it taken, the slowest of 3,000
// loops of 13 ms took 2.5 times the median by that clock and 1.4 by this one. What the collector does meanwhile on
// other threads is in neither.
func Work(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := threadTime()
	f()
	return threadTime() - before
}

// threadTime is the processor time that this thread has used.
func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // fails for a bad argument only
	return time.Duration(t.Nano())
}

// Allocated is how many bytes and objects were allocated so far.
func Allocated() (bytes, objects float64) {
	return float64(read(allocatedBytes)), float64(read("/gc/heap/allocs:objects"))
}

// PeakRSS is the largest resident memory so far, in bytes; 0 where the system does
// not tell.
func PeakRSS() float64 { return status("self", "VmHWM:") }

// RSS is the resident memory of a process, in bytes; 0 where the system does not tell.
func RSS(pid int) float64 { return status(strconv.Itoa(pid), "VmRSS:") }

// status reads an amount of memory that the system tells of a process.
func status(process, field string) float64 {
	data, err := os.ReadFile("/proc/" + process + "/status")
	if err != nil {
		return 0
	}
	for l := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(l, field); ok {
			kib, _ := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 64)
			return kib * 1024
		}
	}
	return 0
}

// Peak watches the live heap for its largest value.
type Peak struct {
	stop    chan struct{}
	stopped sync.WaitGroup
	max     atomic.Uint64
}

// WatchPeak begins. The value is that of each collection; whoever wants to see more
// of the way has the collector run more often.
func WatchPeak() *Peak {
	p := &Peak{stop: make(chan struct{})}
	p.stopped.Go(func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			p.max.Store(max(p.max.Load(), read(liveHeap)))
			select {
			case <-p.stop:
				return
			case <-tick.C:
			}
		}
	})
	return p
}

// Stop ends the watch and returns the largest value seen.
func (p *Peak) Stop() float64 {
	close(p.stop)
	p.stopped.Wait()
	return float64(p.max.Load())
}

// Percentile sorts the values and returns the one below which a share of them lies.
func Percentile(values []time.Duration, share float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(len(values)-1, int(share*float64(len(values))))]
}

// enough is how long a measurement lasts at most whose rounds are so long that the noise of a moment does not count.
const enough = 2 * time.Second

// collect collects, unless next to nothing was allocated since it last did. A collection of two gigabytes takes a
// second, and half of the time of a trial that reads went into collecting what had just been collected.
func collect() {
	if read(allocatedBytes)-collectedAt.Load() < 1<<20 {
		return
	}
	runtime.GC()
	collectedAt.Store(read(allocatedBytes))
}

// collectedAt is how much had been allocated when collect last did something.
var collectedAt atomic.Uint64

// PerOp runs f, which does n operations and all of them itself, until the time is up, and returns the
// nanoseconds of work of one operation in the median round. There are five at least, unless they take longer than is
// enough.
func PerOp(n int, budget time.Duration, f func()) float64 {
	// or the collection of what the input was made of runs beside the first measurement of a process, and not beside the
	// others
	collect()
	f() // warm-up
	var rounds []time.Duration
	for began := time.Now(); time.Since(began) < budget || len(rounds) < 5 && time.Since(began) < enough; {
		rounds = append(rounds, Work(f))
	}
	return float64(Percentile(rounds, 0.5)) / float64(n)
}

// PerOpCollected is the nanoseconds of a call of f that leaves garbage, with its share of the
// collections that it causes: a mean over two of them, after a first one. From there on
// what is allocated is memory that was used before; in a new process most of a large
// allocation's time is the kernel's.
func PerOpCollected(f func()) float64 {
	until := func(collections int64) (calls int, took time.Duration) {
		var before, now debug.GCStats
		debug.ReadGCStats(&before)
		for began := time.Now(); ; {
			f()
			calls++
			took = time.Since(began)
			if debug.ReadGCStats(&now); now.NumGC >= before.NumGC+collections || took > 10*time.Second {
				return calls, took
			}
		}
	}
	until(1)
	calls, took := until(2)
	return float64(took) / float64(calls)
}
