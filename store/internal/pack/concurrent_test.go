package pack

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

// Readers also read objects that the writer has released.
func TestReadersNeedNoLock(t *testing.T) {
	all := protobuf.samples(t, 40, 800)
	p := New()
	type stored struct {
		k Packed
		i int
	}
	var slots [200]atomic.Pointer[stored]
	stop := make(chan struct{})
	var readers sync.WaitGroup
	var reads atomic.Int64
	for r := range 4 {
		readers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(r), 6))
			var kept []*stored
			var buf []byte
			for {
				select {
				case <-stop:
					return
				default:
				}
				if s := slots[random.IntN(len(slots))].Load(); s != nil {
					kept = append(kept, s)
				}
				if len(kept) == 0 {
					continue
				}
				if len(kept) > 100 {
					kept = kept[50:]
				}
				s := kept[random.IntN(len(kept))]
				var err error
				if buf, err = s.k.Append(buf[:0], all[s.i].ctx); err != nil || string(buf) != string(all[s.i].enc) {
					t.Errorf("object %d was not unpacked unchanged: %v", s.i, err)
					return
				}
				p.Stats()
				reads.Add(1)
			}
		})
	}
	random := rand.New(rand.NewPCG(7, 8))
	for step := 0; step < 1500 || reads.Load() < 1000; step++ {
		slot := &slots[random.IntN(len(slots))]
		if old := slot.Load(); old != nil {
			p.Release(old.k)
		}
		i := random.IntN(len(all))
		slot.Store(&stored{p.packed(all[i].enc, all[i].ctx), i})
		if t.Failed() {
			break
		}
	}
	close(stop)
	readers.Wait()
}
