package informer

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/mirador-k8s/mirador/object"
)

func TestTheQueueAllocatesNothingInSteadyTraffic(t *testing.T) {
	q := newBatchQueue[int](queueLimits{})
	in := make([]intDelta, 1000)
	for i := range in {
		in[i] = change(object.Updated, "k"+strconv.Itoa(i), i)
	}
	buf := make([]intDelta, 0, len(in))
	if n := testing.AllocsPerRun(50, func() {
		_ = q.Push(t.Context(), in)
		buf = q.take(buf[:0])
	}); n > 0 {
		t.Errorf("%v allocations for a batch of %d", n, len(in))
	}
}

func TestTheQueueAllocatesNothingWhileItCoalesces(t *testing.T) {
	q := full()
	in := make([]intDelta, 1000)
	for i := range in {
		in[i] = change(object.Updated, "k"+strconv.Itoa(i%100), i)
	}
	if n := testing.AllocsPerRun(50, func() { _ = q.Push(t.Context(), in) }); n > 0 {
		t.Errorf("%v allocations for %d coalesced deltas", n, len(in))
	}
}

func TestTheQueueFreesMemoryAfterABurst(t *testing.T) {
	q := newBatchQueue[int](queueLimits{maxBytes: 1 << 30})
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	in := make([]intDelta, 1000)
	buf := make([]intDelta, 0, len(in))
	before := heap()
	for i := range in {
		in[i] = change(object.Updated, "k", i)
	}
	for range 300 {
		ok(t, q.Push(t.Context(), in))
	}
	atPeak := heap()
	for n, _ := q.depth(); n > 0; n, _ = q.depth() {
		buf = q.take(buf[:0])
	}
	after := heap()
	if atPeak < before+20<<20 {
		t.Fatalf("a burst of 300,000 deltas takes only %d bytes: nothing to give back", atPeak-before)
	}
	if after > before+1<<20 {
		t.Errorf("%d bytes are kept after the burst", after-before)
	}
	runtime.KeepAlive(q)
}

func BenchmarkQueue(b *testing.B) {
	for name, opts := range map[string]queueLimits{"plain": {}, "coalescing": {maxBytes: 1}} {
		b.Run(name, func(b *testing.B) {
			q := newBatchQueue[int](opts)
			in := make([]intDelta, 100)
			for i := range in {
				in[i] = change(object.Updated, "k"+strconv.Itoa(i), i)
			}
			buf := make([]intDelta, 0, 1000)
			b.ReportAllocs()
			for i := 0; i < b.N; i += len(in) {
				_ = q.Push(b.Context(), in)
				if name == "plain" {
					buf = q.take(buf[:0])
				}
			}
		})
	}
}
