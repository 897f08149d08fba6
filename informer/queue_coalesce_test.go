package informer

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/mirador-k8s/mirador/object"
)

func TestOverTheBoundWatchDeltasCoalesceInPlace(t *testing.T) {
	q := full()
	ok(t, q.Push(ended(), []intDelta{
		change(object.Added, "a", 1), change(object.Added, "b", 1), change(object.Updated, "a", 2),
		change(object.Deleted, "b", 2), change(object.Added, "c", 1), change(object.Deleted, "a", 3),
		change(object.Added, "a", 4),
	}))
	same(t, "taken", lines(takeAll(q)), []string{"Added a/4", "Deleted b/2", "Added c/1"})
	if q.coalesced() != 4 {
		t.Errorf("coalesced %d, want 4", q.coalesced())
	}
}

func TestNoDeltaMovesAcrossTheBeginOrEndOfAList(t *testing.T) {
	for _, m := range []object.ChangeType{object.ReplaceEnd, object.ReplaceAbort} {
		q := full()
		ok(t, q.Push(ended(), []intDelta{
			change(object.Added, "a", 1), mark(m, 5), change(object.Updated, "a", 2), change(object.Updated, "a", 3),
		}))
		same(t, m.String(), lines(takeAll(q)), []string{"Added a/1", m.String() + " 5/0", "Updated a/3"})
	}
	// The index that is built when the queue exceeds its bound ends at the list too.
	q := newBatchQueue[int](queueLimits{maxBytes: 800})
	ok(t, q.Push(ended(), []intDelta{
		change(object.Added, "a", 1), mark(object.ReplaceBegin, 0), change(object.Replaced, "a", 2),
		mark(object.ReplaceEnd, 5),
		change(object.Updated, "b", 1), change(object.Updated, "a", 3), change(object.Updated, "a", 4),
		change(object.Updated, "b", 2),
	}))
	same(t, "taken", lines(takeAll(q)), []string{
		"Added a/1", "ReplaceBegin 0/0", "Replaced a/2", "ReplaceEnd 5/0", "Updated b/2", "Updated a/4",
	})
}

func TestBookmarksCoalesceToTheLatestAtTheEnd(t *testing.T) {
	q := full()
	ok(t, q.Push(ended(), []intDelta{
		change(object.Added, "a", 1), mark(object.Bookmark, 1), mark(object.Bookmark, 2),
		change(object.Added, "b", 1), mark(object.Bookmark, 3), change(object.Updated, "a", 2), mark(object.Bookmark, 4),
	}))
	if n, _ := q.depth(); n != 3 {
		t.Errorf("Depth = %d, want 3", n)
	}
	same(t, "taken", lines(takeAll(q)), []string{"Updated a/2", "Added b/1", "Bookmark 4/0"})
	if q.coalesced() != 4 {
		t.Errorf("coalesced %d, want 4", q.coalesced())
	}
}

func TestAStalledConsumerCostsOneDeltaPerKey(t *testing.T) {
	const keys, pushes, maxBytes = 1000, 1_000_000, 64 << 10
	q := newBatchQueue[int](queueLimits{maxBytes: maxBytes})
	names := make([]string, keys)
	for i := range names {
		names[i] = "k" + strconv.Itoa(i)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	last := make(map[object.Key]int, keys)
	batch := make([]intDelta, 0, 100)
	most, mostBytes := 0, 0
	for i := range pushes {
		name := names[rng.IntN(keys)]
		last[object.Key(name)] = i
		batch = append(batch, change(object.Updated, name, i))
		if len(batch) == cap(batch) {
			ok(t, q.Push(ended(), append(batch, mark(object.Bookmark, i))))
			batch = batch[:0]
			n, bytes := q.depth()
			most, mostBytes = max(most, n), max(mostBytes, bytes)
		}
	}
	const each = 100 + 128
	if want := maxBytes/each + keys + 2; most > want {
		t.Errorf("%d deltas waited at most, want no more than %d", most, want)
	}
	if want := maxBytes + (keys+2)*each; mostBytes > want {
		t.Errorf("%d bytes waited at most, want no more than %d", mostBytes, want)
	}
	out := takeAll(q)
	if got, all := uint64(len(out))+q.coalesced(), uint64(pushes+pushes/100); got != all {
		t.Errorf("%d deltas taken or coalesced, %d pushed", got, all)
	}
	final := map[object.Key]int{}
	for _, d := range out {
		if d.Type != object.Bookmark {
			final[d.Item.Key] = d.Item.Value
		}
	}
	same(t, "final state", final, last)
}

func TestCoalescingDoesNotChangeTheFinalState(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 7))
		q := newBatchQueue[int](queueLimits{maxBytes: 1 + rng.IntN(6000), maxBatch: 1 + rng.IntN(40)})
		in := randomStream(rng, 600)
		want, got := newModel(), newModel()
		lastSeen := map[object.Key]int{}
		marks, marksOut := 0, 0
		drain := func() {
			for _, d := range q.take(nil) {
				got.apply(d)
				switch d.Type {
				case object.ReplaceBegin, object.ReplaceEnd, object.ReplaceAbort:
					marksOut++
				case object.Bookmark:
				default:
					if prev, seen := lastSeen[d.Item.Key]; seen && d.Item.Value <= prev {
						t.Fatalf("seed %d: %s: %d after %d", seed, d.Item.Key, d.Item.Value, prev)
					}
					lastSeen[d.Item.Key] = d.Item.Value
				}
			}
		}
		for i := 0; i < len(in); {
			n := min(1+rng.IntN(5), len(in)-i)
			for _, d := range in[i : i+n] {
				want.apply(d)
				if d.Type >= object.ReplaceBegin && d.Type <= object.ReplaceAbort {
					marks++
				}
				for q.Push(ended(), []intDelta{d}) != nil { // a list that has to wait
					drain()
				}
			}
			i += n
			if rng.IntN(20) == 0 {
				drain()
			}
		}
		for n, _ := q.depth(); n > 0; n, _ = q.depth() {
			drain()
		}
		if n, bytes := q.depth(); n != 0 || bytes != 0 {
			t.Fatalf("seed %d: Depth at the end = %d, %d", seed, n, bytes)
		}
		if marks != marksOut {
			t.Fatalf("seed %d: %d marks went in, %d came out", seed, marks, marksOut)
		}
		same(t, fmt.Sprintf("seed %d: state", seed), got.state, want.state)
		same(t, fmt.Sprintf("seed %d: bookmark", seed), got.version, want.version)
		if t.Failed() {
			t.FailNow()
		}
	}
}
