package pack

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/dev/testpods"
)

// A sample is what a store would pack.
type sample struct {
	enc []byte
	ctx string
}

type encoding string

const (
	protobuf encoding = "protobuf"
	jsonText encoding = "json"
)

func (e encoding) sample(tb testing.TB, pod *corev1.Pod) sample {
	tb.Helper()
	enc, err := pod.Marshal()
	if e == jsonText {
		enc, err = json.Marshal(pod)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return sample{enc, pod.Namespace + "/" + pod.Name + " " + string(pod.UID) + " " + pod.ResourceVersion}
}

// samples returns the first pods of a set. Consecutive pods have different templates.
func (e encoding) samples(tb testing.TB, templates, pods int) []sample {
	tb.Helper()
	set := testpods.New(1, templates)
	all := make([]sample, pods)
	for i := range all {
		all[i] = e.sample(tb, set.Pod(i))
	}
	return all
}

// pending changes a pod to its state before it was scheduled.
func pending(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.NodeName = ""
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: pod.Status.QOSClass}
	pod.ManagedFields = pod.ManagedFields[:1]
	return pod
}

// unpacksTo fails the test unless k is unpacked to s.
func unpacksTo(tb testing.TB, k Packed, s sample) {
	tb.Helper()
	got, err := k.Append([]byte("before"), s.ctx)
	if err != nil {
		tb.Fatalf("unpacking %q: %v", s.ctx, err)
	}
	if string(got) != "before"+string(s.enc) {
		tb.Fatalf("%q was unpacked to other bytes: %d, want %d", s.ctx, len(got)-6, len(s.enc))
	}
	if k.Len() != len(s.enc) {
		tb.Fatalf("Len of %q is %d, want %d", s.ctx, k.Len(), len(s.enc))
	}
}

// packed packs original into an allocation of its own.
func (p *Packer) packed(original []byte, context string) Packed {
	data, ref := p.Pack(nil, original, context)
	return ref.Packed(string(data))
}

// size returns the length of the data, without the base.
func (k Packed) size() int { return len(k.data) }
