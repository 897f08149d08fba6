package queue_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/queue"
)

type delta = object.Delta[int]

func change(t object.DeltaType, key string, value int) delta {
	return delta{Type: t, Item: object.Item[int]{Key: object.Key(key), Value: value, Size: 100}}
}

func mark(t object.DeltaType, version int) delta {
	return delta{Type: t, Item: object.Item[int]{Version: object.Version(strconv.Itoa(version))}}
}

func lines(deltas []delta) []string {
	out := []string{}
	for _, d := range deltas {
		out = append(out, fmt.Sprintf("%s %s%s/%d", d.Type, d.Item.Key, d.Item.Version, d.Item.Value))
	}
	return out
}

func takeAll(q *queue.Batches[int]) []delta {
	var out []delta
	for n, _ := q.Depth(); n > 0; n, _ = q.Depth() {
		out = q.Take(out)
	}
	return out
}

// ended is a context that has ended: Push returns its error where it would wait.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// full makes a queue that is over its bound from the second delta on.
func full() *queue.Batches[int] {
	return queue.NewBatches[int](queue.BatchOptions{MaxBytes: 1})
}

func TestBelowTheBoundEverythingComesOutAsItWentIn(t *testing.T) {
	q := queue.NewBatches[int](queue.BatchOptions{MaxBatch: 7})
	var in []delta
	for i := range 1000 {
		in = append(in, change(object.Updated, "k"+strconv.Itoa(i%3), i))
	}
	in = append(in, mark(object.Bookmark, 1), mark(object.Bookmark, 2), delta{})
	ok(t, q.Push(ended(), in))
	if n, bytes := q.Depth(); n != 1002 || bytes < 1000*100 {
		t.Errorf("Depth = %d, %d", n, bytes)
	}
	if got := q.Take(nil); len(got) != 7 {
		t.Errorf("Take gave %d, MaxBatch is 7", len(got))
	}
	same(t, "taken", lines(takeAll(q)), lines(in[7:1002]))
	if n, bytes := q.Depth(); n != 0 || bytes != 0 {
		t.Errorf("Depth at the end = %d, %d", n, bytes)
	}
	if q.Coalesced() != 0 {
		t.Errorf("coalesced %d", q.Coalesced())
	}
}

func TestTakeAppendsAndLeavesAnEmptyQueueAlone(t *testing.T) {
	q := queue.NewBatches[int](queue.BatchOptions{})
	ok(t, q.Push(ended(), []delta{change(object.Added, "b", 2)}))
	got := q.Take([]delta{change(object.Added, "a", 1)})
	same(t, "taken", lines(q.Take(got)), []string{"Added a/1", "Added b/2"})
}

func TestPushCopies(t *testing.T) {
	q := queue.NewBatches[int](queue.BatchOptions{})
	in := []delta{change(object.Added, "a", 1)}
	ok(t, q.Push(ended(), in))
	in[0] = change(object.Added, "z", 99)
	same(t, "taken", lines(takeAll(q)), []string{"Added a/1"})
}

func TestAListWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue.NewBatches[int](queue.BatchOptions{MaxBytes: 500, MaxBatch: 1})
		in := []delta{mark(object.ReplaceBegin, 0)}
		for i := range 10 {
			in = append(in, change(object.Replaced, "k"+strconv.Itoa(i), i))
		}
		in = append(in, mark(object.ReplaceEnd, 9))
		pushed := make(chan error, 1)
		go func() { pushed <- q.Push(t.Context(), in) }()
		var out []delta
		for len(out) < len(in) {
			synctest.Wait()
			if _, bytes := q.Depth(); bytes >= 500+228+128 {
				t.Fatalf("%d bytes wait, the bound is 500 and one delta", bytes)
			}
			ok(t, q.Wait(t.Context()))
			out = q.Take(out)
		}
		ok(t, <-pushed)
		same(t, "taken", lines(out), lines(in))
	})
}

func TestAWaitingListCanBeGivenUpAndAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := full()
		ctx, cancel := context.WithCancel(t.Context())
		pushed := make(chan error, 1)
		go func() {
			pushed <- q.Push(ctx, []delta{mark(object.ReplaceBegin, 0), change(object.Replaced, "a", 1)})
		}()
		synctest.Wait()
		cancel()
		if err := <-pushed; !errors.Is(err, context.Canceled) {
			t.Errorf("Push = %v", err)
		}
		ok(t, q.Push(ctx, []delta{mark(object.ReplaceAbort, 0)}))
		same(t, "taken", lines(takeAll(q)), []string{"ReplaceBegin 0/0", "ReplaceAbort 0/0"})
	})
}

func TestKeepAllOnlyCounts(t *testing.T) {
	q := queue.NewBatches[int](queue.BatchOptions{MaxBytes: 1, KeepAll: true})
	in := []delta{
		change(object.Added, "a", 1), change(object.Updated, "a", 2), mark(object.ReplaceBegin, 0),
		change(object.Replaced, "a", 3), mark(object.ReplaceEnd, 1), mark(object.Bookmark, 2), mark(object.Bookmark, 3),
	}
	ok(t, q.Push(ended(), in))
	if _, bytes := q.Depth(); bytes < 300 {
		t.Errorf("%d bytes counted", bytes)
	}
	same(t, "taken", lines(takeAll(q)), lines(in))
}

func TestCloseEndsBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue.NewBatches[int](queue.BatchOptions{MaxBytes: 1})
		waited := make(chan error, 1)
		go func() { waited <- q.Wait(t.Context()) }()
		synctest.Wait()
		ok(t, q.Push(t.Context(), []delta{change(object.Added, "a", 1)}))
		ok(t, <-waited)
		pushed := make(chan error, 1)
		go func() { pushed <- q.Push(t.Context(), []delta{mark(object.ReplaceBegin, 0)}) }()
		synctest.Wait()
		q.Close()
		q.Close()
		if err := <-pushed; !errors.Is(err, queue.ErrClosed) {
			t.Errorf("the Push that waited = %v", err)
		}
		if err := q.Push(t.Context(), []delta{change(object.Added, "b", 1)}); !errors.Is(err, queue.ErrClosed) {
			t.Errorf("Push = %v", err)
		}
		ok(t, q.Wait(t.Context()))
		same(t, "taken", lines(q.Take(nil)), []string{"Added a/1"})
		if err := q.Wait(t.Context()); !errors.Is(err, queue.ErrClosed) {
			t.Errorf("Wait = %v", err)
		}
		empty := queue.NewBatches[int](queue.BatchOptions{})
		go func() { waited <- empty.Wait(t.Context()) }()
		synctest.Wait()
		empty.Close()
		if err := <-waited; !errors.Is(err, queue.ErrClosed) {
			t.Errorf("the Wait that waited = %v", err)
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	q := queue.NewBatches[int](queue.BatchOptions{})
	if err := q.Wait(ended()); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait = %v", err)
	}
	ok(t, q.Push(t.Context(), []delta{change(object.Added, "a", 1)}))
	ok(t, q.Wait(ended())) // there is something: that comes first
}

func TestAnUnknownTypeIsRefused(t *testing.T) {
	q := queue.NewBatches[int](queue.BatchOptions{})
	if err := q.Push(t.Context(), []delta{{Type: object.Bookmark + 1}}); err == nil {
		t.Error("pushed")
	}
}

// model applies deltas as a store does: a list counts as a whole, at its end.
type model struct {
	state, staged map[object.Key]int
	version       object.Version
}

func (m *model) apply(d delta) {
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
func randomStream(rng *rand.Rand, n int) []delta {
	var out []delta
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
	q := queue.NewBatches[int](queue.BatchOptions{MaxBytes: 4 << 10, MaxBatch: 16})
	in := randomStream(rand.New(rand.NewPCG(3, 4)), 20_000)
	go func() {
		defer q.Close()
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
	var batch []delta
	for q.Wait(t.Context()) == nil {
		batch = q.Take(batch[:0])
		for _, d := range batch {
			got.apply(d)
		}
	}
	same(t, "state", got.state, want.state)
	same(t, "bookmark", got.version, want.version)
}

// A list leaves no memory behind, and what comes after it is in order.
func TestTheQueueGoesOnAfterAList(t *testing.T) {
	q := queue.NewBatches[int](queue.BatchOptions{})
	for round := range 7 { // of lengths that end anywhere in a chunk
		in := []delta{mark(object.ReplaceBegin, 0)}
		for v := range round {
			in = append(in, change(object.Replaced, "a", v+1))
		}
		in = append(in, mark(object.ReplaceEnd, 9))
		ok(t, q.Push(t.Context(), in))
		same(t, "the list", lines(q.Take(nil)), lines(in))
		in = []delta{change(object.Added, "b", 1), change(object.Updated, "b", 2), change(object.Updated, "b", 3)}
		ok(t, q.Push(t.Context(), in))
		same(t, "what came after it", lines(q.Take(nil)), lines(in))
	}
}
