package measure

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLiveHeapAndItsPeakIncludeWhatIsHeld(t *testing.T) {
	const size = 32 << 20
	before := LiveHeap()
	p := WatchPeak()
	held := make([]byte, size)
	during := LiveHeap()
	for deadline := time.Now().Add(time.Minute); p.max.Load() < size && time.Now().Before(deadline); {
		runtime.Gosched() // until the watching goroutine has read the value
	}
	runtime.KeepAlive(held)
	held = nil
	after := LiveHeap()
	peak := p.Stop()
	runtime.KeepAlive(held)
	if during-before < size*0.9 || after-before > size*0.1 {
		t.Errorf("%v before, %v while %d bytes are held, %v after", before, during, size, after)
	}
	if peak < during*0.9 {
		t.Errorf("the peak is %v, but %v were seen", peak, during)
	}
}

func TestStoppedTimersAreDropped(t *testing.T) {
	const size = 32 << 20
	before := LiveHeap()
	var timers []*time.Timer
	func() {
		held := make([]byte, size)
		timers = append(timers, time.AfterFunc(time.Hour, func() { runtime.KeepAlive(held) }))
	}()
	for i := range 100 { // as in a process with connections, few timers are stopped
		timers = append(timers, time.AfterFunc(time.Hour+time.Duration(i-50)*time.Minute/2, func() {}))
		defer timers[i+1].Stop()
	}
	timers[0].Stop()
	timers[0] = nil
	kept := LiveHeap()
	DropStoppedTimers()
	if dropped := LiveHeap(); dropped-before > size*0.1 {
		t.Errorf("%v before, %v with a stopped timer that refers to %d bytes, %v after", before, kept, size, dropped)
	}
}

func TestCollectWithoutAllocationsDoesNothing(t *testing.T) {
	collections := func() int64 {
		var s debug.GCStats
		debug.ReadGCStats(&s)
		return s.NumGC
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // so that there are no others
	sink = make([]byte, 2<<20)
	collect()
	before := collections()
	collect()
	if got := collections() - before; got != 0 {
		t.Errorf("%d collections though nothing was allocated", got)
	}
	sink = make([]byte, 2<<20)
	collect()
	if got := collections() - before; got != 1 {
		t.Errorf("%d collections after an allocation", got)
	}
}

var sink []byte

func TestWorkIncludesOnlyTheCallingGoroutine(t *testing.T) {
	var sum int
	spin := func() {
		for i := range 50_000_000 {
			sum += i
		}
	}
	began := time.Now()
	work := Work(spin)
	if wall := time.Since(began); work <= 0 || work > wall {
		t.Errorf("a loop of %v is %v of work", wall, work)
	}
	waited := Work(func() {
		done := make(chan struct{})
		go func() { defer close(done); spin() }()
		<-done
	})
	if waited > work/2 {
		t.Errorf("to wait for %v of work elsewhere is %v of work", work, waited)
	}
}

func TestPercentiles(t *testing.T) {
	var v []time.Duration
	for i := range 100 {
		v = append(v, time.Duration(99-i))
	}
	if p := Percentile(v, 0.5); p != 50 {
		t.Errorf("the median is %d", p)
	}
	if p := Percentile(v, 0.99); p != 99 {
		t.Errorf("p99 is %d", p)
	}
	if Percentile(nil, 0.5) != 0 {
		t.Error("no values have a percentile")
	}
}

func TestCountersGrow(t *testing.T) {
	cpu := CPU()
	bytes, objects := Allocated()
	var keep [][]byte
	for range 1000 {
		keep = append(keep, make([]byte, 64<<10))
	}
	if b, o := Allocated(); b-bytes < 60<<20 || o-objects < 900 {
		t.Errorf("%v bytes, %v objects", b-bytes, o-objects)
	}
	if ns := PerOp(10, 20*time.Millisecond, func() {
		for x, i := 0, 0; i < 100_000; i++ {
			x += i
			keep[i%1000][0] = byte(x)
		}
	}); ns <= 0 {
		t.Errorf("an operation takes %v ns", ns)
	}
	if CPU() <= cpu || PeakRSS() < 4<<20 {
		t.Errorf("CPU %v, resident %v", CPU()-cpu, PeakRSS())
	}
}

// The time of a call includes the collections that it causes, and the collector has run before the first call that
// counts.
func TestPerOpCollectedIncludesCollections(t *testing.T) {
	var before, after debug.GCStats
	debug.ReadGCStats(&before)
	calls := 0
	took := PerOpCollected(func() { calls++; garbage = make([]byte, 4<<20) })
	debug.ReadGCStats(&after)
	if n := after.NumGC - before.NumGC; n < 3 || took <= 0 {
		t.Errorf("%d collections over %d calls, %v ns a call", n, calls, took)
	}
}

var garbage []byte
