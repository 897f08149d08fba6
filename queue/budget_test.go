package queue_test

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/queue"
)

func TestBatchesAllocateNothingInSteadyTraffic(t *testing.T) {
	q := queue.NewBatches[int](queue.BatchOptions{})
	in := make([]delta, 1000)
	for i := range in {
		in[i] = change(object.Updated, "k"+strconv.Itoa(i), i)
	}
	buf := make([]delta, 0, len(in))
	if n := testing.AllocsPerRun(50, func() {
		_ = q.Push(t.Context(), in)
		buf = q.Take(buf[:0])
	}); n > 0 {
		t.Errorf("%v allocations for a batch of %d", n, len(in))
	}
}

func TestBatchesAllocateNothingWhileTheyCoalesce(t *testing.T) {
	q := full()
	in := make([]delta, 1000)
	for i := range in {
		in[i] = change(object.Updated, "k"+strconv.Itoa(i%100), i)
	}
	if n := testing.AllocsPerRun(50, func() { _ = q.Push(t.Context(), in) }); n > 0 {
		t.Errorf("%v allocations for %d coalesced deltas", n, len(in))
	}
}

func TestBatchesGiveABurstBack(t *testing.T) {
	q := queue.NewBatches[int](queue.BatchOptions{MaxBytes: 1 << 30})
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	in := make([]delta, 1000)
	buf := make([]delta, 0, len(in))
	before := heap()
	for i := range in {
		in[i] = change(object.Updated, "k", i)
	}
	for range 300 {
		ok(t, q.Push(t.Context(), in))
	}
	atPeak := heap()
	for n, _ := q.Depth(); n > 0; n, _ = q.Depth() {
		buf = q.Take(buf[:0])
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

func TestDeltaFIFOAllocatesOnceForAKey(t *testing.T) {
	f := newFIFO(t, queue.Options[Pod]{})
	process := func(string, podDeltas, bool) error { return nil }
	if n := testing.AllocsPerRun(100, func() {
		_ = f.Add(Pod{"a", 1})
		_, _ = f.Pop(process)
	}); n > 1 {
		t.Errorf("%v allocations to add and pop, want the deltas alone", n)
	}
}

func BenchmarkBatches(b *testing.B) {
	for name, opts := range map[string]queue.BatchOptions{"plain": {}, "coalescing": {MaxBytes: 1}} {
		b.Run(name, func(b *testing.B) {
			q := queue.NewBatches[int](opts)
			in := make([]delta, 100)
			for i := range in {
				in[i] = change(object.Updated, "k"+strconv.Itoa(i), i)
			}
			buf := make([]delta, 0, 1000)
			b.ReportAllocs()
			for i := 0; i < b.N; i += len(in) {
				_ = q.Push(b.Context(), in)
				if name == "plain" {
					buf = q.Take(buf[:0])
				}
			}
		})
	}
}

func BenchmarkDeltaFIFO(b *testing.B) {
	f, err := queue.NewDeltaFIFO(queue.Options[Pod]{Key: podName})
	if err != nil {
		b.Fatal(err)
	}
	process := func(string, podDeltas, bool) error { return nil }
	b.ReportAllocs()
	for b.Loop() {
		_ = f.Add(Pod{"a", 1})
		_, _ = f.Pop(process)
	}
}
