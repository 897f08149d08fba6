//go:build !race

package pack

import (
	"errors"
	"math/rand/v2"
	"testing"
)

func TestDamagedDataIsAnError(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	for _, e := range []encoding{protobuf, jsonText} {
		all := e.samples(t, 3, 30)
		p := New()
		silent, tried := 0, 0
		try := func(k Packed, s sample) {
			got, err := k.Append(nil, s.ctx)
			k.Len()
			tried++
			if err == nil && string(got) != string(s.enc) {
				silent++
			}
			if err != nil && len(got) != 0 {
				t.Fatalf("Append returned %d bytes together with the error %v", len(got), err)
			}
		}
		for _, s := range all {
			k := p.packed(s.enc, s.ctx)
			for range 200 {
				data := []byte(k.data)
				for range 1 + random.IntN(3) {
					data[random.IntN(len(data))] = byte(random.Uint32())
				}
				try(Packed{k.base, string(data)}, s)
			}
			for n := range len(k.data) {
				try(Packed{k.base, k.data[:n]}, s)
			}
			try(Packed{nil, k.data}, s)
			if b := k.base; b != nil {
				// The base is damaged: objects that are read from it must fail, too.
				for range 50 {
					data := []byte(b.data)
					data[random.IntN(len(data))] ^= 1 << random.IntN(8)
					damaged := &base{parent: b.parent, data: string(data), cache: b.cache, length: b.length, depth: b.depth}
					damaged.shape.Store(b.shape.Load())
					try(Packed{damaged, k.data}, s)
				}
			}
		}
		if silent > 0 {
			t.Errorf("%s: %d of %d damaged objects were read without an error", e, silent, tried)
		}
	}
}

func TestAnotherContextIsAnError(t *testing.T) {
	all := protobuf.samples(t, 1, 10)
	p := New()
	for i, s := range all {
		k := p.packed(s.enc, s.ctx)
		if i == 0 {
			continue // the base, a copy of itself
		}
		if _, err := k.Append(nil, all[0].ctx); !errors.Is(err, errCheck) {
			t.Errorf("read with the context of another object: %v, want %v", err, errCheck)
		}
		if _, err := k.Append(nil, ""); !errors.Is(err, errDamaged) {
			t.Errorf("read without a context: %v, want %v", err, errDamaged)
		}
	}
}

// Random bytes as ops and literals: apply must stay within its arguments.
func FuzzApplyStaysWithin(f *testing.F) {
	f.Add([]byte{0x05, 0x82, 0x60, 0x01}, []byte("abc"), []byte("0123456789"), "context", 20)
	f.Add([]byte{0xf1, 0xf2, 0xf0, 0x00, 0xef, 0x80, 0x01, 0x7f, 0x03}, []byte{1, 2, 3}, make([]byte, 300), "", 300)
	f.Fuzz(func(t *testing.T, ops, lits, base []byte, ctx string, n int) {
		if n < 0 || n > 1<<20 {
			return
		}
		out, ok := apply([]byte("before"), n, base, ctx, ops, lits)
		if string(out[:6]) != "before" || len(out) > 6+n || ok && len(out) != 6+n {
			t.Fatalf("apply wrote %d bytes, ok %v, want %d", len(out)-6, ok, n)
		}
	})
}
