package fleet

import (
	"errors"
	"runtime"
	"sync"
	"testing"
)

// A list for which there is no room is not counted, not even for a moment in which another cluster could lose a mirror.
func TestAListThatIsRefusedIsNeverCounted(t *testing.T) {
	limits, err := Limits{FleetBytes: 1000}.orDefault()
	if err != nil {
		t.Fatal(err)
	}
	f := newFleetUsage(limits.FleetBytes)
	large, list := newClusterUsage(limits, f), newClusterUsage(limits, f)
	if err := large.open("large", func() {}).set(1, 900, true); err != nil {
		t.Fatal(err)
	}
	arriving := list.open("list", func() {})
	var lists sync.WaitGroup
	defer lists.Wait()
	ended := make(chan struct{})
	lists.Go(func() {
		defer close(ended)
		for range 20_000 {
			if err := arriving.set(1, 200, false); !errors.Is(err, errLimit) {
				t.Errorf("the list is not refused: %v", err)
				return
			}
		}
	})
	for {
		if total := f.total(); total != 900 {
			t.Fatalf("%d bytes are counted", total)
		}
		select {
		case <-ended:
			return
		default:
			runtime.Gosched()
		}
	}
}
