package fanout_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/mirador-k8s/mirador/fanout"
)

// An op is one event delivered to all handlers.
func BenchmarkPublish(b *testing.B) {
	for _, size := range []int{1, 100} {
		for _, handlers := range []int{1, 10, 50} {
			b.Run(fmt.Sprintf("batch=%d/handlers=%d", size, handlers), func(b *testing.B) {
				f := fanout.New[int](fanout.Options{})
				var wg sync.WaitGroup
				wg.Add(handlers)
				total := (b.N + size - 1) / size * size
				for range handlers {
					n := 0
					join(b, f, opts{MaxBacklog: -1, Handle: func(event) {
						if n++; n == total {
							wg.Done()
						}
					}})
				}
				batch := make([]event, size)
				for i := range batch {
					batch[i] = update(fmt.Sprint(i), 1, 2)
				}
				b.ReportAllocs()
				b.ResetTimer()
				for i := 0; i < total; i += size {
					f.Publish(uint64(i/size+1), batch)
				}
				wg.Wait()
				b.StopTimer()
				stop(b, f)
			})
		}
	}
}
