package informer_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/internal/testpods"
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
	return object.Item[*corev1.Pod]{Key: object.NewKey(p.Namespace, p.Name), Version: object.Version(p.ResourceVersion), UID: string(p.UID),
		Size: len(encoded), Encoded: encoded, Value: p, Codec: podCodec, Owned: true}
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestBudget_BytesAPodInEachLayout holds what a pod costs, with two indexes and everything
// counted. As they are decoded these pods take 20.6 KB. It measures few, so that what is
// fixed weighs more than in bench, where there are 100,000.
func TestBudget_BytesAPodInEachLayout(t *testing.T) {
	const pods, templates = 4000, 40
	for layout, budget := range map[store.Layout]uint64{store.Live: 22_500, store.Shared: 7_000, store.Packed: 900} {
		set := testpods.New(1, templates)
		before := liveHeap()
		w, err := store.New(store.Options[*corev1.Pod]{Layout: layout, ReadCache: -1, Indexes: map[string]store.IndexFunc[*corev1.Pod]{
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

// TestBudget_AllocationsAnEvent holds what an update allocates from the source to the last
// of ten handlers: its record, and a share of the batch.
func TestBudget_AllocationsAnEvent(t *testing.T) {
	synctest.Test(t, testAllocations)
}

func testAllocations(t *testing.T) {
	const keys, rounds, handlers = 100, 200, 10
	items := make([]object.Item[*thing], keys)
	for i := range items {
		items[i] = item(fmt.Sprint("thing-", i), i+1, "")
	}
	f := newFeed(state{keys, items})
	r := make1(t, f)
	var seen atomic.Int64
	all := make(chan struct{}, 1)
	for range handlers {
		subscribe(t, r, informer.Funcs[*thing]{OnUpdate: func(_, _ *thing) {
			if seen.Add(1)%(keys*handlers) == 0 {
				all <- struct{}{}
			}
		}})
	}
	r.run(t)
	batches := make([][]source.Change[*thing], rounds)
	for round := range batches {
		for i := range keys {
			batches[round] = append(batches[round], put(fmt.Sprint("thing-", i), (round+1)*1000+i, ""))
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, b := range batches {
		r.say(b...)
		<-all
	}
	runtime.ReadMemStats(&after)
	each := float64(after.Mallocs-before.Mallocs) / (keys * rounds)
	t.Logf("%.2f allocations an event with %d handlers", each, handlers)
	if each > 1.5 {
		t.Errorf("%.2f allocations an event with %d handlers, at most 1.5", each, handlers)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}
