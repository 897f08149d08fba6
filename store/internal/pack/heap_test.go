//go:build !race

package pack

import (
	"math/rand/v2"
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

// A Packer of small objects gets its scratch from the pool after one of large objects.
func TestALargeObjectLeavesNoLargeBuffers(t *testing.T) {
	random, p := rand.New(rand.NewPCG(4, 4)), New()
	large := make([]byte, 1<<20)
	for i := range large {
		large[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[random.IntN(64)]
	}
	kept := func(after string) {
		t.Helper()
		s := scratches.Get().(*scratch)
		defer scratches.Put(s)
		if n := s.largest(); n > maxKept {
			t.Errorf("after %s, a buffer of %d bytes is kept", after, n)
		}
	}
	base := p.packed(large, "")
	kept("packing a large object")
	sibling := p.packed(large[:maxKept/2], "")
	if base.base == nil || sibling.base != base.base {
		t.Fatal("the small object is not packed against the large one")
	}
	kept("packing a small object like it")
	p.Release(sibling)
	p.Release(base)
	kept("releasing the large object")
}

// A list reads siblings one after the other.
func TestSiblingsThatAreReadInTurnDecodeTheirBaseOnce(t *testing.T) {
	all := protobuf.samples(t, 1, 8)
	p := New()
	var packed []Packed
	for _, s := range all {
		packed = append(packed, p.packed(s.enc, s.ctx))
	}
	r := new(reading)
	for i, k := range packed {
		if k.base != packed[0].base {
			t.Fatalf("object %d has another base", i)
		}
		before := p.cache.misses.Load()
		if raw, err := k.base.bytes(r); err != nil || string(raw) != string(all[0].enc) {
			t.Fatalf("the base is not object 0: %v", err)
		}
		if decoded := p.cache.misses.Load() > before; decoded != (i == 0) {
			t.Errorf("object %d: decoded %t", i, decoded)
		}
	}
}
