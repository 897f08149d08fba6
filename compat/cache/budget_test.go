package cache_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/compat/cache"
	"github.com/mirador-k8s/mirador/dev/testpods"
)

// TestBudget_AllocationsPerEvent bounds the allocations for one change of a pod, from the watch to the last handler.
// The bound does not depend on the number of handlers. Other goroutines of the process only add to the count, so the
// test uses the smallest of three measurements.
func TestBudget_AllocationsPerEvent(t *testing.T) {
	const pods, rounds, budget = 50, 1 + 3*6, 2.4
	for _, handlers := range []int{1, 10} {
		t.Run(fmt.Sprintf("%d handlers", handlers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				set := testpods.New(1, 10)
				states := make([][]*corev1.Pod, 1+rounds) // states[i] has every pod after i changes
				for i := range pods {
					p := set.Pod(i)
					states[0] = append(states[0], p)
					for round := 1; round <= rounds; round++ {
						p = set.Changed(p, round*pods+i)
						states[round] = append(states[round], p)
					}
				}
				f := newFake("1", states[0]...)
				i := cache.NewSharedIndexInformer(f, &corev1.Pod{}, 0,
					cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
				var seen atomic.Int64
				all := make(chan struct{}, 1)
				for range handlers {
					addHandler(t, i, cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) {
						if seen.Add(1)%int64(pods*handlers) == 0 {
							all <- struct{}{}
						}
					}})
				}
				start(t, i)
				w := f.current()
				change := func(to []*corev1.Pod) {
					for _, p := range to {
						w.Modify(p)
					}
					<-all
				}
				change(states[1]) // lets buffers grow
				each := math.Inf(1)
				for part := range slices.Chunk(states[2:], (rounds-1)/3) {
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					for _, s := range part {
						change(s)
					}
					runtime.ReadMemStats(&after)
					each = min(each, float64(after.Mallocs-before.Mallocs)/float64(pods*len(part)))
				}
				t.Logf("%.2f allocations per event", each)
				if each > budget {
					t.Errorf("%.2f allocations per event, want at most %.2f", each, budget)
				}
			})
		})
	}
}
