package share_test

import (
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/dev/testpods"
	"github.com/mirador-k8s/mirador/internal/share"
)

// write writes to every kind of part of a pod, which a handler must not do.
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

// A write by a reader damages only what it writes to: the table finds and counts equal parts as before.
func TestWritesOfReadersDoNotAffectTheTable(t *testing.T) {
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
	// Maps are walked in a random order, on which it depends which sightings are forgotten. So the number of uses
	// differs a little from run to run.
	isNear := func(a, b int) bool { return max(a, b)-min(a, b) <= max(a, b)/100 }
	if !isNear(got.Entries, want.Entries) || !isNear(got.Uses, want.Uses) {
		t.Errorf("with objects that were written to the table has %d entries with %d uses, without %d with %d",
			got.Entries, got.Uses, want.Entries, want.Uses)
	}
	if empty.Objects != 0 || empty.Entries != 0 || empty.Uses != 0 {
		t.Errorf("after the last release the table still has %+v", empty)
	}
}

// If the table read what it returned, the race detector would report it, and without the detector the runtime would
// end the process: "concurrent map iteration and map write".
func TestTableNeverReadsWhatItReturned(t *testing.T) {
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
