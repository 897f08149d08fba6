//go:build !race

package pack

import (
	"runtime"
	"runtime/metrics"
	"testing"
)

// The budgets of this package rely on Stats, so it must count what the heap has.
func TestStatsCountTheHeap(t *testing.T) {
	all := protobuf.samples(t, 50, 1500)
	live := func() int64 {
		runtime.GC()
		runtime.GC()
		s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(s)
		return int64(s[0].Value.Uint64())
	}
	packed := make([]Packed, len(all))
	before := live()
	p := New()
	for i, s := range all {
		packed[i] = p.packed(s.enc, s.ctx)
	}
	grown, s := live()-before, p.Stats()
	t.Logf("the heap grew by %d, counted %d: %+v", grown, s.Bytes(), s)
	if grown > s.Bytes()*115/100 || grown < s.Bytes()*80/100 {
		t.Errorf("the heap grew by %d bytes, %d are counted", grown, s.Bytes())
	}
	runtime.KeepAlive(packed)
	runtime.KeepAlive(all)

	for _, k := range packed {
		p.Release(k)
	}
	clear(packed)
	if left := live() - before; left > 1<<20 {
		t.Errorf("%d bytes are left after all objects were released", left)
	}
	runtime.KeepAlive(p)
}
