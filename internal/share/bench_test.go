package share_test

import (
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/dev/testpods"
	"github.com/mirador-k8s/mirador/internal/share"
)

// wirePods returns pods as a client decodes them from protobuf.
func wirePods(tb testing.TB, set *testpods.Set, from, n int) []*corev1.Pod {
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = wirePod(tb, set, from+i)
	}
	return pods
}

func wirePod(tb testing.TB, set *testpods.Set, i int) *corev1.Pod {
	wire, err := set.Pod(i).Marshal()
	if err != nil {
		tb.Fatalf("encode pod %d: %v", i, err)
	}
	return decodePod(tb, wire)
}

func decodePod(tb testing.TB, wire []byte) *corev1.Pod {
	pod := new(corev1.Pod)
	if err := pod.Unmarshal(wire); err != nil {
		tb.Fatalf("decode a pod: %v", err)
	}
	return pod
}

// BenchmarkStoreAPod decodes a pod, shares it, and releases an older one. It reports the time of each step: a pod is
// shared while the processor's cache still has what the decoder wrote.
func BenchmarkStoreAPod(b *testing.B) {
	for _, c := range []struct {
		name  string
		owned bool
	}{{"owned", true}, {"copied", false}} {
		b.Run(c.name, func(b *testing.B) {
			set := testpods.New(1, 200)
			table := share.NewTable()
			wires := make([][]byte, 4000)
			stored := make([]any, len(wires))
			uses := make([]share.Uses, len(wires))
			for i := range wires {
				wire, err := set.Pod(i).Marshal()
				if err != nil {
					b.Fatal(err)
				}
				wires[i] = wire
				stored[i], uses[i] = table.Share(decodePod(b, wire), c.owned)
			}
			var decode, shareTime, release time.Duration
			b.ResetTimer()
			for i := range b.N {
				start := time.Now()
				pod := decodePod(b, wires[i%len(wires)])
				decoded := time.Now()
				shared, used := table.Share(pod, c.owned)
				done := time.Now()
				at := (i * 7919) % len(stored)
				table.Release(uses[at])
				stored[at], uses[at] = shared, used
				release += time.Since(done)
				shareTime += done.Sub(decoded)
				decode += decoded.Sub(start)
			}
			b.ReportMetric(float64(decode.Nanoseconds())/float64(b.N), "ns/decode")
			b.ReportMetric(float64(shareTime.Nanoseconds())/float64(b.N), "ns/share")
			b.ReportMetric(float64(release.Nanoseconds())/float64(b.N), "ns/release")
		})
	}
}

func BenchmarkStringsOfAPod(b *testing.B) {
	set := testpods.New(1, 200)
	strings := share.NewStrings(1 << 14)
	pods := wirePods(b, set, 0, 2000)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		strings.Share(pods[i%len(pods)])
	}
}

func liveHeap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// held is what a store keeps for a shared object.
type held struct {
	obj  any
	uses share.Uses
}

// heapPerPod returns bytes per pod, as decoded and as shared, the table included.
func heapPerPod(tb testing.TB, pods, templates int) (plain, shared float64) {
	plain = heapOf(tb, pods, templates, func(p *corev1.Pod) any { return p })
	table := share.NewTable()
	shared = heapOf(tb, pods, templates, func(p *corev1.Pod) any {
		obj, uses := table.Share(p, true)
		return &held{obj, uses}
	})
	runtime.KeepAlive(table)
	return plain, shared
}

func heapOf(tb testing.TB, pods, templates int, store func(*corev1.Pod) any) float64 {
	set := testpods.New(1, templates)
	stored := make([]any, pods)
	before := liveHeap()
	for i := range stored {
		stored[i] = store(wirePod(tb, set, i))
	}
	perPod := float64(int64(liveHeap()-before)) / float64(pods)
	runtime.KeepAlive(stored)
	runtime.KeepAlive(set)
	return perPod
}

// BenchmarkHeapPerPod reports bytes per pod: as decoded, shared, and decoded with Strings.
func BenchmarkHeapPerPod(b *testing.B) {
	const pods, templates = 20000, 200
	for range b.N {
		plain, shared := heapPerPod(b, pods, templates)
		strings := share.NewStrings(1 << 16)
		interned := heapOf(b, pods, templates, func(p *corev1.Pod) any { strings.Share(p); return p })
		runtime.KeepAlive(strings)
		b.ReportMetric(plain, "plain-B/pod")
		b.ReportMetric(shared, "shared-B/pod")
		b.ReportMetric(shared/plain, "shared/plain")
		b.ReportMetric(interned/plain, "strings/plain")
	}
}
func BenchmarkHashAPod(b *testing.B) {
	pod := wirePod(b, testpods.New(1, 200), 1)
	b.ReportAllocs()
	for b.Loop() {
		share.Hash(pod)
	}
}

func BenchmarkEqualPods(b *testing.B) {
	set := testpods.New(1, 200)
	pod, twin := wirePod(b, set, 1), wirePod(b, set, 1)
	b.ReportAllocs()
	for b.Loop() {
		if !share.Equal(pod, twin) {
			b.Fatal(share.Diff(pod, twin))
		}
	}
}
