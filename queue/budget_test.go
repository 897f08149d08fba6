package queue_test

import (
	"testing"

	"github.com/mirador-k8s/mirador/queue"
)

func TestDeltaFIFOAllocatesOnceForAKey(t *testing.T) {
	f := newFIFO(t, queue.Options[Pod]{})
	process := func(string, podDeltas, bool) error { return nil }
	if n := testing.AllocsPerRun(100, func() {
		_ = f.Add(Pod{"a", 1})
		_, _ = f.Pop(process)
	}); n > 1 {
		t.Errorf("an Add and a Pop allocate %v times, want once, for the deltas", n)
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
