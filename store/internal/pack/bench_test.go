package pack

import (
	"fmt"
	"testing"
)

// Consecutive pods have different templates, so the base changes with every object, as in a list of a cluster.
var benched = []struct {
	e         encoding
	templates int
}{{protobuf, 200}, {jsonText, 200}, {protobuf, 2000}}

func BenchmarkPack(b *testing.B) {
	for _, bc := range benched {
		b.Run(fmt.Sprintf("%s/templates=%d", bc.e, bc.templates), func(b *testing.B) {
			all := bc.e.samples(b, bc.templates, 10_000)
			p := New()
			for _, s := range all {
				p.packed(s.enc, s.ctx)
			}
			b.ReportAllocs()
			size, i := 0, 0
			for b.Loop() {
				s := &all[i%len(all)]
				k := p.packed(s.enc, s.ctx)
				p.Release(k)
				size += k.size()
				i++
			}
			b.ReportMetric(float64(size)/float64(i), "B/object")
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, bc := range benched {
		b.Run(fmt.Sprintf("%s/templates=%d", bc.e, bc.templates), func(b *testing.B) {
			all := bc.e.samples(b, bc.templates, 10_000)
			p := New()
			packed := make([]Packed, len(all))
			for i, s := range all {
				packed[i] = p.packed(s.enc, s.ctx)
			}
			var buf []byte
			var err error
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				n := i % len(all)
				if buf, err = packed[n].Append(buf[:0], all[n].ctx); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}
