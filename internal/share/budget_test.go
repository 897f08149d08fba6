package share_test

import (
	"reflect"
	"testing"
	"unsafe"

	"github.com/mirador-k8s/mirador/dev/testpods"
	"github.com/mirador-k8s/mirador/internal/share"
)

// One more pod of a known template needs copies of the slices whose capacity the decoder made too large, and no other
// allocation.
func TestSharingAPodStaysWithinItsAllocationBudget(t *testing.T) {
	set := testpods.New(1, 20)
	table := share.NewTable()
	for i := range 200 {
		table.Share(wirePod(t, set, i), true)
	}
	pods := wirePods(t, set, 200, 201)
	next := 0
	got := testing.AllocsPerRun(len(pods)-1, func() {
		table.Share(pods[next], true)
		next++
	})
	t.Logf("%.1f allocations", got)
	if got > 8 {
		t.Errorf("sharing a pod of a known template allocates %.1f times", got)
	}
}

func TestSharedPodsStayWithinTheirHeapBudget(t *testing.T) {
	plain, shared := heapPerPod(t, 4000, 40)
	t.Logf("%.0f bytes per pod, shared %.0f: %.3f", plain, shared, shared/plain)
	if shared > 0.36*plain {
		t.Errorf("a shared pod takes %.0f bytes, a plain one %.0f", shared, plain)
	}
}

func TestStringsReplacesEqualStringsByOne(t *testing.T) {
	strings := share.NewStrings(4000)
	set := testpods.New(1, 1)
	a, b := set.Pod(1), set.Pod(2)
	want := b.DeepCopy()
	strings.Share(a)
	strings.Share(b)
	if !reflect.DeepEqual(b, want) {
		t.Fatalf("Strings.Share changed the pod at %s", share.Diff(b, want))
	}
	if unsafe.StringData(a.Spec.ServiceAccountName) != unsafe.StringData(b.Spec.ServiceAccountName) {
		t.Error("equal strings are not shared")
	}
	x := map[string]any{"name": []any{string([]byte("value")), map[string]any{"key": string([]byte("value"))}}}
	strings.Share(x)
	first, second := x["name"].([]any)[0].(string), x["name"].([]any)[1].(map[string]any)["key"].(string)
	if first != "value" || unsafe.StringData(first) != unsafe.StringData(second) {
		t.Errorf("equal strings in interfaces are not shared: %v", x)
	}
	for i := range uint64(300) {
		obj, want := object(i), object(i)
		strings.Share(obj)
		if !reflect.DeepEqual(obj, want) {
			t.Fatalf("seed %d: differs at %s", i, share.Diff(obj, want))
		}
	}
}

func TestEmptyTableReleasesItsMemory(t *testing.T) {
	table := share.NewTable()
	set := testpods.New(1, 20)
	var stored []share.Uses
	for i := range 2000 {
		_, uses := table.Share(set.Pod(i), true)
		stored = append(stored, uses)
	}
	full := table.Stats().Bytes
	for _, uses := range stored {
		table.Release(uses)
	}
	if s := table.Stats(); s.Bytes > full/4 || s.Bytes > 64<<10 {
		t.Errorf("the empty table takes %d bytes, the full one %d", s.Bytes, full)
	}
}
