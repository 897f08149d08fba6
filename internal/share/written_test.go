package share_test

import (
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/dev/testpods"
	"github.com/mirador-k8s/mirador/internal/share"
)

// write does to a pod what a handler must not do, in every kind of part.
func write(p *corev1.Pod) {
	p.Labels["written"] = "by a handler"
	p.Annotations = nil
	p.Namespace = "elsewhere"
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		c.Image = "written"
		for name := range c.Resources.Requests {
			delete(c.Resources.Requests, name)
		}
	}
	p.Spec.Tolerations = append(p.Spec.Tolerations[:0], corev1.Toleration{Key: "written"})
	for i := range p.Status.Conditions {
		p.Status.Conditions[i].Reason = "written"
	}
}

// What readers write by mistake spoils what they write to and nothing else: the table finds equal
// parts as before, and counts them as before.
func TestWhatReadersWriteDoesNotDisturbTheTable(t *testing.T) {
	count := func(disturb func(*corev1.Pod)) (full, empty share.Stats) {
		set, table := testpods.New(1, 5), share.NewTable()
		var uses []share.Uses
		for i := range 100 {
			obj, used := table.Share(set.Pod(i), true)
			uses = append(uses, used)
			disturb(obj.(*corev1.Pod))
		}
		full = table.Stats()
		for _, used := range uses {
			table.Release(used)
		}
		return full, table.Stats()
	}
	want, _ := count(func(*corev1.Pod) {})
	got, empty := count(write)
	// Maps are walked in a random order, and with it differs which parts that were seen once are forgotten:
	// of some 8,700 uses a table that nobody disturbs has up to ten more or fewer from run to run.
	isNear := func(a, b int) bool { return max(a, b)-min(a, b) <= max(a, b)/100 }
	if !isNear(got.Entries, want.Entries) || !isNear(got.Uses, want.Uses) {
		t.Errorf("with objects that were written to the table has %d entries with %d uses, without %d with %d",
			got.Entries, got.Uses, want.Entries, want.Uses)
	}
	if empty.Objects != 0 || empty.Entries != 0 || empty.Uses != 0 {
		t.Errorf("after the last release the table still has %+v", empty)
	}
}

// The table never reads what it has handed out. Otherwise the race detector tells of this test, and without
// it the runtime ends the process: "concurrent map iteration and map write".
func TestAReaderMayWriteWhileTheTableIsUsed(t *testing.T) {
	set, table := testpods.New(1, 5), share.NewTable()
	handed := make(chan *corev1.Pod, 16)
	var reader sync.WaitGroup
	reader.Go(func() {
		for p := range handed {
			for range 3 {
				write(p)
			}
		}
	})
	var uses []share.Uses
	for i := range 500 {
		obj, used := table.Share(set.Pod(i), i%4 > 0)
		handed <- obj.(*corev1.Pod)
		if uses = append(uses, used); len(uses) > 20 {
			table.Release(uses[0])
			uses = uses[1:]
		}
	}
	close(handed)
	reader.Wait()
}
