package informer_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/dev/testpods"
	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
	"github.com/mirador-k8s/mirador/store"
)

var podCodec = &object.Codec[*corev1.Pod]{
	Encode: func(dst []byte, p *corev1.Pod) ([]byte, error) {
		encoded, err := p.Marshal()
		return append(dst, encoded...), err
	},
	Decode: func(encoded []byte) (*corev1.Pod, error) {
		p := new(corev1.Pod)
		return p, p.Unmarshal(encoded)
	},
}

// podItem is a pod as a source gives it to a reader that keeps bytes.
func podItem(t testing.TB, p *corev1.Pod) object.Item[*corev1.Pod] {
	encoded, err := p.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return object.Item[*corev1.Pod]{Key: object.NewKey(p.Namespace, p.Name),
		Version: object.Version(p.ResourceVersion), UID: string(p.UID),
		Size: len(encoded), Encoded: encoded, Value: p, Codec: podCodec, Owned: true}
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// The memory of a stored pod, with two indexes, stays within its budget. With few pods, fixed costs weigh more than in
// the benchmarks.
func TestBudget_BytesAPodInEachLayout(t *testing.T) {
	const pods, templates = 4000, 40
	for layout, budget := range map[store.Layout]uint64{store.Live: 22_500, store.Shared: 7_000, store.Packed: 900} {
		set := testpods.New(1, templates)
		before := liveHeap()
		w, err := store.New(store.Options[*corev1.Pod]{Layout: layout, ReadCache: -1,
			Indexes: map[string]store.IndexFunc[*corev1.Pod]{
				"namespace": func(p *corev1.Pod) ([]string, error) { return []string{p.Namespace}, nil },
				"node":      func(p *corev1.Pod) ([]string, error) { return []string{p.Spec.NodeName}, nil },
			}})
		if err != nil {
			t.Fatal(err)
		}
		w.BeginReplace()
		for i := range pods {
			w.Stage(podItem(t, set.Pod(i)))
		}
		w.CommitReplace("1", nil)
		each := (liveHeap() - before) / pods
		t.Logf("%s: %d bytes a pod", layout, each)
		if each > budget {
			t.Errorf("%s: %d bytes a pod, at most %d", layout, each, budget)
		}
		runtime.KeepAlive(w)
		runtime.KeepAlive(set)
	}
}

// An update allocates, from the source to the last of ten handlers, its record and a share of the batch.
func TestBudget_AllocationsAnEvent(t *testing.T) {
	const keys, rounds = 100, 1 + 3*60
	items := make([]object.Item[*thing], keys)
	for i := range items {
		items[i] = item(fmt.Sprint("thing-", i), i+1, "")
	}
	batches := make([][]source.Change[*thing], rounds)
	for round := range batches {
		for i := range keys {
			batches[round] = append(batches[round], put(fmt.Sprint("thing-", i), (round+1)*1000+i, ""))
		}
	}
	holdAllocations(t, 10, 1.5, state{keys, items}, batches)
}

// The same for realistic pods whose readiness changes. Handlers read both states, and the number of handlers makes no
// difference. In the shared layout one allocation records which parts the object shares, and reflection over maps adds
// some: how many depends on the seeds of the maps, which differ from process to process.
func TestBudget_AllocationsAnEventOfAPodInEachLayout(t *testing.T) {
	for layout, budget := range map[store.Layout]float64{store.Live: 1.25, store.Shared: 7, store.Packed: 11.7} {
		for _, handlers := range []int{1, 10} {
			t.Run(fmt.Sprintf("%s with %d handlers", layout, handlers), func(t *testing.T) {
				first, batches := changingPods(t, 40, 10)
				holdAllocations(t, handlers, budget, first, batches, func(o *informer.Options[*corev1.Pod]) { o.Layout = layout })
			})
		}
	}
}

// changingPods returns pods, and batches in each of which all of them change.
func changingPods(t *testing.T, pods,
	rounds int) (first stateOf[*corev1.Pod], batches [][]source.Change[*corev1.Pod]) {
	set := testpods.New(1, 10)
	now := make([]*corev1.Pod, pods)
	first.version = 1
	for i := range now {
		now[i] = set.Pod(i)
		first.items = append(first.items, podItem(t, now[i].DeepCopy()))
	}
	for round := range rounds {
		var batch []source.Change[*corev1.Pod]
		for i := range now {
			now[i] = set.Changed(now[i], round*pods+i+1)
			batch = append(batch, source.Change[*corev1.Pod]{Type: object.Updated, Item: podItem(t, now[i].DeepCopy())})
		}
		batches = append(batches, batch)
	}
	return first, batches
}

// holdAllocations measures what an update allocates from the source to the last handler. The first batch is not
// counted, because buffers grow with it. Other work of the process can only add allocations, so the smallest of three
// figures counts.
func holdAllocations[T any](t *testing.T, handlers int, budget float64, first stateOf[T], batches [][]source.Change[T],
	opts ...func(*informer.Options[T])) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := makeOf(t, newFeedOf(first), opts...)
		var seen atomic.Int64
		all := make(chan struct{}, 1)
		for range handlers {
			subscribe(t, r, informer.Funcs[T]{OnUpdate: func(_, _ T) {
				if seen.Add(1)%int64(handlers*len(batches[0])) == 0 {
					all <- struct{}{}
				}
			}}, nil)
		}
		r.run(t)
		r.say(batches[0]...)
		<-all
		each := math.Inf(1)
		for part := range slices.Chunk(batches[1:], (len(batches)-1)/3) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for _, b := range part {
				r.say(b...)
				<-all
			}
			runtime.ReadMemStats(&after)
			each = min(each, float64(after.Mallocs-before.Mallocs)/float64(len(batches[0])*len(part)))
		}
		t.Logf("%.2f allocations an event with %d handlers", each, handlers)
		if each > budget {
			t.Errorf("%.2f allocations an event with %d handlers, at most %.2f", each, handlers, budget)
		}
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
	})
}
