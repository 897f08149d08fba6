package pack

import (
	"bytes"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// FuzzP15_ReadersBesideThePacker packs and releases objects according to a script while two readers read them, also
// after they were released.
func FuzzP15_ReadersBesideThePacker(f *testing.F) {
	pods := jsonText.samples(f, 2, 3)
	f.Add([]byte("\x00\x10\x20\x33\x01\x02\x03\x04"), pods[0].enc, pods[1].enc)
	f.Add([]byte("\x00\x01\x02\x03\x00\x01\x02\x03\x07\x06\x05"), []byte("2026-01-01T00:00:00Z"), []byte{})
	f.Fuzz(func(t *testing.T, script, first, second []byte) {
		const context = "default/name 12345"
		p := New()
		type stored struct {
			k Packed
			s sample
		}
		var slots [8]atomic.Pointer[stored]
		var stop atomic.Bool
		var wrong atomic.Pointer[string]
		var readers sync.WaitGroup
		for range 2 {
			readers.Go(func() {
				var buf []byte
				for ; !stop.Load(); runtime.Gosched() {
					for i := range slots {
						l := slots[i].Load()
						if l == nil {
							continue
						}
						var err error
						if buf, err = l.k.Append(buf[:0], l.s.ctx); err != nil || !bytes.Equal(buf, l.s.enc) {
							text := string(l.s.enc)
							wrong.Store(&text)
							return
						}
					}
				}
			})
		}
		base := [][]byte{first, second}
		for n, op := range script[:min(len(script), 64)] {
			slot := &slots[op%8]
			if old := slot.Load(); old != nil {
				p.Release(old.k)
				unpacksTo(t, old.k, old.s)
				if op&8 != 0 {
					slot.Store(nil)
					continue
				}
			}
			enc := append(bytes.Clone(base[op>>4&1]), byte(n), op)
			enc[int(op)*len(enc)/256] ^= byte(n)
			slot.Store(&stored{p.packed(enc, context), sample{enc, context}})
		}
		stop.Store(true)
		readers.Wait()
		if text := wrong.Load(); text != nil {
			t.Fatalf("a reader found another object than %q", *text)
		}
		for i := range slots {
			if l := slots[i].Load(); l != nil {
				unpacksTo(t, l.k, l.s)
				p.Release(l.k)
			}
		}
		if s := p.Stats(); s.Objects != 0 || s.Bases != 0 || s.RawBytes != 0 {
			t.Fatalf("all objects are released, but the statistics are %+v", s)
		}
	})
}
