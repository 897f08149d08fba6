//go:build !race

package share_test

import (
	"testing"

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

// A few nodes with two pointers to the next one have more paths than the walk may take.
func TestObjectWithTooManyPathsIsKeptWhole(t *testing.T) {
	table := share.NewTable()
	fan := &ring{Name: "end"}
	for range 60 {
		fan = &ring{Next: fan, Any: fan}
	}
	stored := keptWhole(t, table, fan)
	if s := table.Stats(); s.Kept != 2 || s.Objects != 2 {
		t.Errorf("two objects were kept whole, the table reports %+v", s)
	}
	for _, uses := range stored {
		table.Release(uses)
	}
	if s := table.Stats(); s.Kept != 0 || s.Objects != 0 || s.Entries != 0 {
		t.Errorf("after the last release the table reports %+v", s)
	}
}
