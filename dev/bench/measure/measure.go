// Package measure measures what a trial costs this process: live heap, its peak, resident memory, CPU time,
// allocations, latencies.
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

// LiveHeap runs two collections, so that finalizers and pools are done, and returns the bytes that are still alive.
func LiveHeap() float64 {
	runtime.GC()
	runtime.GC()
	return float64(read(liveHeap))
}

// DropStoppedTimers makes the runtime forget timers that were stopped. It keeps them, and through their functions the
// contexts of requests and all that these refer to, until a quarter of a processor's timers were stopped.
func DropStoppedTimers() {
	var done sync.WaitGroup
	for range 4 * runtime.GOMAXPROCS(0) { // so that each processor has some of them
		done.Go(func() {
			for range 20 {
				timers := make([]*time.Timer, 300)
				for i := range timers {
					timers[i] = time.AfterFunc(time.Hour, func() {})
				}
				for _, t := range timers {
					t.Stop()
				}
				time.Sleep(time.Millisecond) // the processor looks at its timers
			}
		})
	}
	done.Wait()
}

// Settle makes the process resemble one that has run for a while: the system has given it this much memory, and it is
// free. In a new process that does not collect, much of the time of allocations is the kernel providing pages.
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

// CPU returns the CPU time that this process has used.
func CPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // fails only for a bad argument
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// CPUOf returns the CPU time that a process has used; 0 if the system does not report it.
func CPUOf(pid int) time.Duration {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * (time.Second / 100) // in ticks, of which Linux has 100 in a second
}

// Work returns the CPU time of f, which must do all its work on the calling goroutine. Unlike elapsed time it does not
// include time that the host gives to others. Work of the collector on other threads is not included.
func Work(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := threadTime()
	f()
	return threadTime() - before
}

// threadTime returns the CPU time that this thread has used.
func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // fails only for a bad argument
	return time.Duration(t.Nano())
}

// Allocated returns how many bytes and objects were allocated so far.
func Allocated() (bytes, objects float64) {
	return float64(read(allocatedBytes)), float64(read("/gc/heap/allocs:objects"))
}

// PeakRSS returns the largest resident memory so far, in bytes; 0 if the system does not report it.
func PeakRSS() float64 { return status("self", "VmHWM:") }

// RSS returns the resident memory of a process, in bytes; 0 if the system does not report it.
func RSS(pid int) float64 { return status(strconv.Itoa(pid), "VmRSS:") }

// status reads an amount of memory from a process's status.
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

// WatchPeak starts to watch. The value is updated at each collection; run the collector more often for a finer
// resolution.
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

// enough is how long a measurement with long rounds lasts at most, because noise hardly affects them.
const enough = 2 * time.Second

// collect runs the collector, unless almost nothing was allocated since the last time. Collecting a large heap takes
// long.
func collect() {
	if read(allocatedBytes)-collectedAt.Load() < 1<<20 {
		return
	}
	runtime.GC()
	collectedAt.Store(read(allocatedBytes))
}

// collectedAt is how much had been allocated at the last collection by collect.
var collectedAt atomic.Uint64

// Quick makes PerOp run one round, for a smoke run. It is set before the first measurement.
var Quick bool

// PerOp runs f, which does n operations on the calling goroutine, until the budget is used, and returns the CPU time
// of one operation in the median round, in nanoseconds. There are at least five rounds, unless they take longer than
// enough.
func PerOp(n int, budget time.Duration, f func()) float64 {
	// Otherwise the garbage of the input would be collected during the first measurement of a process, and not during the
	// others.
	collect()
	f() // warm-up
	var rounds []time.Duration
	for began := time.Now(); ; {
		rounds = append(rounds, Work(f))
		took := time.Since(began)
		if Quick || took >= budget && (len(rounds) >= 5 || took >= enough) {
			break
		}
	}
	return float64(Percentile(rounds, 0.5)) / float64(n)
}

// PerOpCollected returns the time of one call of f in nanoseconds, for an f that produces garbage, including its share
// of the collections it causes: a mean over two collections, after a first one. From then on allocations reuse memory;
// in a new process most of the time of a large allocation is spent in the kernel.
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
