package kube

import (
	"io"
	"testing"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
)

func BenchmarkList(b *testing.B) {
	const n = 1000
	b.Run("typed protobuf", func(b *testing.B) { benchmarkList(b, encodings[0], n, typedPodsFrom) })
	b.Run("typed json", func(b *testing.B) { benchmarkList(b, encodings[1], n, typedPodsFrom) })
	b.Run("dynamic", func(b *testing.B) {
		benchmarkList(b, encodings[1], n, func(b *testing.B, o option) func() int { return reader(b, mustDynamic(b, o)) })
	})
	b.Run("raw", func(b *testing.B) {
		benchmarkList(b, encodings[1], n, func(b *testing.B, o option) func() int { return reader(b, mustRaw(b, o)) })
	})
}

func typedPodsFrom(b *testing.B, o option) func() int { return reader(b, typedPods(b, o)) }

func benchmarkList(b *testing.B, enc encoding, n int, open func(*testing.B, option) func() int) {
	b.ReportAllocs()
	for b.Loop() {
		body, size := manyPods(b, enc, n)
		b.SetBytes(int64(size))
		if got := open(b, answering(enc, body))(); got != n {
			b.Fatalf("%d items", got)
		}
	}
}

func reader[T any](b *testing.B, s *Source[T]) func() int {
	return func() (n int) {
		l, err := s.List(b.Context(), source.ListOptions{})
		if err != nil {
			b.Fatal(err)
		}
		defer l.Close()
		var items []object.Item[T]
		for {
			items, err = l.Read(items[:0])
			if err == io.EOF {
				return n
			}
			if err != nil {
				b.Fatal(err)
			}
			n += len(items)
		}
	}
}
