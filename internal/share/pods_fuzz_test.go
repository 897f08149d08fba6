package share_test

import (
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/dev/testpods"
	"github.com/mirador-k8s/mirador/internal/share"
)

// FuzzP15_PodsBesideAReader shares two pods, each several times, while a reader reads the stored ones, and releases
// them in turn.
func FuzzP15_PodsBesideAReader(f *testing.F) {
	set := testpods.New(1, 2)
	encoded := func(i int) []byte {
		b, err := set.Pod(i).Marshal()
		if err != nil {
			f.Fatal(err)
		}
		return b
	}
	f.Add(encoded(0), encoded(1), byte(0))
	f.Add(encoded(0), encoded(2), byte(0xff))
	f.Add([]byte{}, encoded(3), byte(0x55))
	f.Fuzz(func(t *testing.T, first, second []byte, owned byte) {
		decode := func(b []byte) *corev1.Pod {
			p := &corev1.Pod{}
			if p.Unmarshal(b) != nil {
				return nil
			}
			return p
		}
		want := []*corev1.Pod{decode(first), decode(second)}
		if want[0] == nil || want[1] == nil {
			return
		}
		var stored [6]atomic.Pointer[corev1.Pod]
		same := func(i int, p *corev1.Pod) bool { return p == nil || reflect.DeepEqual(p, want[i%2]) }
		var stop, torn atomic.Bool
		var reader sync.WaitGroup
		reader.Go(func() {
			for ; !stop.Load(); runtime.Gosched() {
				for i := range stored {
					if !same(i, stored[i].Load()) {
						torn.Store(true)
						return
					}
				}
			}
		})
		table := share.NewTable()
		var uses [len(stored)]share.Uses
		for i := range stored {
			in := decode([][]byte{first, second}[i%2])
			var out any
			out, uses[i] = table.Share(in, owned&(1<<i) != 0)
			stored[i].Store(out.(*corev1.Pod))
			if owned&(1<<i) == 0 && !same(i, in) {
				t.Error("an object that is not owned was written to")
			}
		}
		for i := range stored {
			p := stored[i].Load()
			if !same(i, p) {
				t.Errorf("number %d differs at %s", i, share.Diff(p, want[i%2]))
			}
			table.Release(uses[i]) // the reader may continue to read it
		}
		stop.Store(true)
		reader.Wait()
		if torn.Load() {
			t.Error("a reader saw an object that was never stored")
		}
		if s := table.Stats(); s.Entries != 0 || s.Objects != 0 {
			t.Errorf("after the last release the table still has %+v", s)
		}
	})
}
