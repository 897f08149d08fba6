package informer

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/mirador-k8s/mirador/object"
)

// A coalesced state comes before the changes of other keys in between, so Through must be older than it: a consumer
// that has applied all deltas up to one has all changes of every key up to that delta's Through, and at the end of
// the queue all changes.
func TestThroughIsNeverNewerThanWhatWasTaken(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		q := newBatchQueue[int](queueLimits{maxBytes: 1 + rnd.IntN(3000), maxBatch: 1 + rnd.IntN(20)})
		history := map[string][]int{} // per key, the versions at which it changed
		applied := map[string]int{}
		reached, version := 0, 0
		take := func() {
			for _, d := range q.take(nil) {
				own, _ := strconv.Atoi(string(d.Item.Version))
				if d.Type != object.Bookmark {
					applied[string(d.Item.Key)] = own
				}
				through, _ := strconv.Atoi(string(d.Through()))
				reached = max(reached, through)
				for key, changes := range history {
					for _, v := range changes {
						if v <= reached && v > applied[key] {
							t.Fatalf("seed %d: at %d the change of %s at %d was still queued (applied: %d)", seed, reached,
								key, v, applied[key])
						}
					}
				}
			}
		}
		for range 200 {
			for range 1 + rnd.IntN(10) {
				version++
				key := fmt.Sprint("k", rnd.IntN(12))
				history[key] = append(history[key], version)
				d := object.Delta[int]{Type: object.Updated,
					Item: object.Item[int]{Key: object.Key(key), Version: object.Version(strconv.Itoa(version))}}
				if rnd.IntN(4) == 0 {
					d.Type = object.Deleted
				}
				if err := q.Push(t.Context(), []object.Delta[int]{d}); err != nil {
					t.Fatal(err)
				}
			}
			if rnd.IntN(3) == 0 {
				take()
			}
		}
		for n, _ := q.depth(); n > 0; n, _ = q.depth() {
			take()
		}
		if reached != version {
			t.Fatalf("seed %d: drained, the queue has vouched for %d of %d", seed, reached, version)
		}
	}
}
