package informer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/mirador-k8s/mirador/object"
)

type intDelta = object.Delta[int]

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func change(t object.ChangeType, key string, value int) intDelta {
	return intDelta{Type: t, Item: object.Item[int]{Key: object.Key(key), Value: value, Size: 100}}
}

func mark(t object.ChangeType, version int) intDelta {
	return intDelta{Type: t, Item: object.Item[int]{Version: object.Version(strconv.Itoa(version))}}
}

func lines(deltas []intDelta) []string {
	out := []string{}
	for _, d := range deltas {
		out = append(out, fmt.Sprintf("%s %s%s/%d", d.Type, d.Item.Key, d.Item.Version, d.Item.Value))
	}
	return out
}

func takeAll(q *batchQueue[int]) []intDelta {
	var out []intDelta
	for n, _ := q.depth(); n > 0; n, _ = q.depth() {
		out = q.take(out)
	}
	return out
}

// ended is a context that has ended: Push returns its error where it would wait.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// full returns a queue that is over its bound from the second delta on.
func full() *batchQueue[int] {
	return newBatchQueue[int](queueLimits{maxBytes: 1})
}

func TestBelowTheBoundDeltasLeaveAsTheyEntered(t *testing.T) {
	q := newBatchQueue[int](queueLimits{maxBatch: 7})
	var in []intDelta
	for i := range 1000 {
		in = append(in, change(object.Updated, "k"+strconv.Itoa(i%3), i))
	}
	in = append(in, mark(object.Bookmark, 1), mark(object.Bookmark, 2), intDelta{})
	ok(t, q.Push(ended(), in))
	if n, bytes := q.depth(); n != 1002 || bytes < 1000*100 {
		t.Errorf("Depth = %d, %d", n, bytes)
	}
	if got := q.take(nil); len(got) != 7 {
		t.Errorf("Take gave %d, maxBatch is 7", len(got))
	}
	same(t, "taken", lines(takeAll(q)), lines(in[7:1002]))
	if n, bytes := q.depth(); n != 0 || bytes != 0 {
		t.Errorf("Depth at the end = %d, %d", n, bytes)
	}
	if q.coalesced() != 0 {
		t.Errorf("coalesced %d", q.coalesced())
	}
}

func TestTakeAppendsAndLeavesAnEmptyQueueAlone(t *testing.T) {
	q := newBatchQueue[int](queueLimits{})
	ok(t, q.Push(ended(), []intDelta{change(object.Added, "b", 2)}))
	got := q.take([]intDelta{change(object.Added, "a", 1)})
	same(t, "taken", lines(q.take(got)), []string{"Added a/1", "Added b/2"})
}

func TestPushCopies(t *testing.T) {
	q := newBatchQueue[int](queueLimits{})
	in := []intDelta{change(object.Added, "a", 1)}
	ok(t, q.Push(ended(), in))
	in[0] = change(object.Added, "z", 99)
	same(t, "taken", lines(takeAll(q)), []string{"Added a/1"})
}

func TestAListWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newBatchQueue[int](queueLimits{maxBytes: 500, maxBatch: 1})
		in := []intDelta{mark(object.ReplaceBegin, 0)}
		for i := range 10 {
			in = append(in, change(object.Replaced, "k"+strconv.Itoa(i), i))
		}
		in = append(in, mark(object.ReplaceEnd, 9))
		pushed := make(chan error, 1)
		go func() { pushed <- q.Push(t.Context(), in) }()
		var out []intDelta
		for len(out) < len(in) {
			synctest.Wait()
			if _, bytes := q.depth(); bytes >= 500+228+128 {
				t.Fatalf("%d bytes wait, the bound is 500 and one delta", bytes)
			}
			if !q.wait(t.Context()) {
				t.Fatal("the queue is closed")
			}
			out = q.take(out)
		}
		ok(t, <-pushed)
		same(t, "taken", lines(out), lines(in))
	})
}

func TestAWaitingListCanBeAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := full()
		ctx, cancel := context.WithCancel(t.Context())
		pushed := make(chan error, 1)
		go func() {
			pushed <- q.Push(ctx, []intDelta{mark(object.ReplaceBegin, 0), change(object.Replaced, "a", 1)})
		}()
		synctest.Wait()
		cancel()
		if err := <-pushed; !errors.Is(err, context.Canceled) {
			t.Errorf("Push = %v", err)
		}
		ok(t, q.Push(ctx, []intDelta{mark(object.ReplaceAbort, 0)}))
		same(t, "taken", lines(takeAll(q)), []string{"ReplaceBegin 0/0", "ReplaceAbort 0/0"})
	})
}

func TestKeepAllOnlyCounts(t *testing.T) {
	q := newBatchQueue[int](queueLimits{maxBytes: 1, keepAll: true})
	in := []intDelta{
		change(object.Added, "a", 1), change(object.Updated, "a", 2), mark(object.ReplaceBegin, 0),
		change(object.Replaced, "a", 3), mark(object.ReplaceEnd, 1), mark(object.Bookmark, 2), mark(object.Bookmark, 3),
	}
	ok(t, q.Push(ended(), in))
	if _, bytes := q.depth(); bytes < 300 {
		t.Errorf("%d bytes counted", bytes)
	}
	same(t, "taken", lines(takeAll(q)), lines(in))
}

func TestCloseEndsBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newBatchQueue[int](queueLimits{maxBytes: 1})
		waited := make(chan bool, 1)
		go func() { waited <- q.wait(t.Context()) }()
		synctest.Wait()
		ok(t, q.Push(t.Context(), []intDelta{change(object.Added, "a", 1)}))
		if !<-waited {
			t.Error("wait = false with a delta in the queue")
		}
		pushed := make(chan error, 1)
		go func() { pushed <- q.Push(t.Context(), []intDelta{mark(object.ReplaceBegin, 0)}) }()
		synctest.Wait()
		q.close()
		q.close()
		if err := <-pushed; !errors.Is(err, errQueueClosed) {
			t.Errorf("the Push that waited = %v", err)
		}
		if err := q.Push(t.Context(), []intDelta{change(object.Added, "b", 1)}); !errors.Is(err, errQueueClosed) {
			t.Errorf("Push = %v", err)
		}
		if !q.wait(t.Context()) {
			t.Error("wait = false before the closed queue is empty")
		}
		same(t, "taken", lines(q.take(nil)), []string{"Added a/1"})
		if q.wait(t.Context()) {
			t.Error("wait = true after the closed queue is empty")
		}
		empty := newBatchQueue[int](queueLimits{})
		go func() { waited <- empty.wait(t.Context()) }()
		synctest.Wait()
		empty.close()
		if <-waited {
			t.Error("the wait that close ended = true")
		}
	})
}

func TestAnUnknownTypeIsRefused(t *testing.T) {
	q := newBatchQueue[int](queueLimits{})
	if err := q.Push(t.Context(), []intDelta{{Type: object.ReplaceAbort + 1}}); err == nil {
		t.Error("pushed")
	}
}

// model applies deltas as a store does: a list is applied as a whole, at its end.
type model struct {
	state, staged map[object.Key]int
	version       object.Version
}

func (m *model) apply(d intDelta) {
	switch d.Type {
	case object.Added, object.Updated:
		m.state[d.Item.Key] = d.Item.Value
	case object.Deleted:
		delete(m.state, d.Item.Key)
	case object.ReplaceBegin:
		m.staged = map[object.Key]int{}
	case object.Replaced:
		m.staged[d.Item.Key] = d.Item.Value
	case object.ReplaceEnd:
		m.state, m.staged = m.staged, nil
	case object.ReplaceAbort:
		m.staged = nil
	case object.Bookmark:
		m.version = d.Item.Version
	}
}

func newModel() *model { return &model{state: map[object.Key]int{}} }

// randomStream makes a stream of n steps over few keys. Values only grow.
func randomStream(rng *rand.Rand, n int) []intDelta {
	var out []intDelta
	keys := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for value := 1; value <= n; value++ {
		key := keys[rng.IntN(len(keys))]
		switch r := rng.IntN(100); {
		case r < 55:
			out = append(out, change(object.Updated, key, value))
		case r < 70:
			out = append(out, change(object.Deleted, key, value))
		case r < 80:
			out = append(out, change(object.Added, key, value))
		case r < 95:
			out = append(out, mark(object.Bookmark, value))
		default:
			out = append(out, mark(object.ReplaceBegin, value))
			for _, k := range keys[:rng.IntN(len(keys))] {
				value++
				out = append(out, change(object.Replaced, k, value))
			}
			end := object.ReplaceEnd
			if rng.IntN(3) == 0 {
				end = object.ReplaceAbort
			}
			out = append(out, mark(end, value))
		}
	}
	return out
}

func TestProducerAndConsumerRunSideBySide(t *testing.T) {
	q := newBatchQueue[int](queueLimits{maxBytes: 4 << 10, maxBatch: 16})
	in := randomStream(rand.New(rand.NewPCG(3, 4)), 20_000)
	go func() {
		defer q.close()
		for part := range slices.Chunk(in, 13) {
			if err := q.Push(context.Background(), part); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	want, got := newModel(), newModel()
	for _, d := range in {
		want.apply(d)
	}
	var batch []intDelta
	for q.wait(context.Background()) {
		batch = q.take(batch[:0])
		for _, d := range batch {
			got.apply(d)
		}
	}
	same(t, "state", got.state, want.state)
	same(t, "bookmark", got.version, want.version)
}

// After a list the queue frees its memory, and later deltas are in order.
func TestTheQueueGoesOnAfterAList(t *testing.T) {
	q := newBatchQueue[int](queueLimits{})
	for round := range 7 { // of lengths that end anywhere in a chunk
		in := []intDelta{mark(object.ReplaceBegin, 0)}
		for v := range round {
			in = append(in, change(object.Replaced, "a", v+1))
		}
		in = append(in, mark(object.ReplaceEnd, 9))
		ok(t, q.Push(t.Context(), in))
		same(t, "the list", lines(q.take(nil)), lines(in))
		in = []intDelta{change(object.Added, "b", 1), change(object.Updated, "b", 2), change(object.Updated, "b", 3)}
		ok(t, q.Push(t.Context(), in))
		same(t, "what came after it", lines(q.take(nil)), lines(in))
	}
}
