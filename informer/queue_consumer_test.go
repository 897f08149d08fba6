package informer

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/mirador-k8s/mirador/object"
)

// consumers take from a queue as the writer of an informer does.
type consumers struct {
	running, started atomic.Int32
	together         atomic.Bool // two ran at once
	taken            []intDelta
}

func (c *consumers) of(ctx context.Context, q *batchQueue[int]) {
	q.startConsumer = func() {
		c.started.Add(1)
		go func() {
			if c.running.Add(1) > 1 {
				c.together.Store(true)
			}
			defer c.running.Add(-1)
			for q.wait(ctx) {
				c.taken = q.take(c.taken)
			}
		}()
	}
}

func push(t *testing.T, q *batchQueue[int], value int) intDelta {
	t.Helper()
	d := change(object.Updated, "a", value)
	ok(t, q.Push(context.Background(), []intDelta{d}))
	return d
}

// A consumer starts with the first delta, stays while deltas follow each other closely, and ends after a rest. The
// queue then holds nothing that only a consumer needs.
func TestAConsumerEndsWhenThereIsNothingToTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newBatchQueue[int](queueLimits{})
		var c consumers
		c.of(t.Context(), q)
		value := 0
		for round := range int32(3) {
			if c.running.Load() != 0 {
				t.Fatal("a consumer runs, and there is nothing to take")
			}
			for range 5 {
				value++
				push(t, q, value)
				time.Sleep(writerRest / 2)
				if running, started := c.running.Load(), c.started.Load(); running != 1 || started != round+1 {
					t.Fatalf("round %d: %d consumers run, %d were started", round, running, started)
				}
			}
			time.Sleep(2 * writerRest)
			synctest.Wait()
		}
		if len(c.taken) != value {
			t.Errorf("%d deltas were taken, not %d", len(c.taken), value)
		}
		if q.filled != nil || q.checks != nil || q.ring.first != nil || q.ring.spare != nil {
			t.Error("the queue at rest holds a channel, a timer or memory for deltas")
		}
	})
}

// A consumer that was started for a bookmark ends at once, unless there is more to take by then.
func TestAConsumerOfABookmarkEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newBatchQueue[int](queueLimits{})
		var c consumers
		c.of(t.Context(), q)
		for round := range int32(3) {
			began := time.Now()
			ok(t, q.Push(t.Context(), []intDelta{change(object.Bookmark, "", int(round))}))
			if q.checks != nil {
				t.Error("there is a timer")
			}
			synctest.Wait()
			if running, started := c.running.Load(), c.started.Load(); running != 0 || started != round+1 {
				t.Errorf("%d consumers run, %d were started", running, started)
			}
			if len(c.taken) != int(round)+1 || time.Since(began) != 0 || q.ring.first != nil {
				t.Errorf("%d deltas were taken in %s", len(c.taken), time.Since(began))
			}
		}
	})
}

// A delta that comes at the very moment in which the consumer ends is taken, by this consumer or by another, and never
// by two at once.
func TestADeltaAtTheEndOfAConsumerIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newBatchQueue[int](queueLimits{})
		var c consumers
		c.of(t.Context(), q)
		var want []intDelta
		for round := range 500 {
			want = append(want, push(t, q, round))
			time.Sleep(2 * writerRest) // the second check, which ends the consumer, is due now
		}
		synctest.Wait()
		same(t, "taken", lines(c.taken), lines(want))
		if c.together.Load() {
			t.Error("two consumers ran at once")
		}
		if started := c.started.Load(); started < 2 {
			t.Errorf("%d consumers were started, so none has ended", started)
		}
		time.Sleep(3 * writerRest)
	})
}

// A context that ends, or the end of the queue, ends the consumer and its timer.
func TestAConsumerEndsWithItsContextAndItsQueue(t *testing.T) {
	for name, end := range map[string]func(cancel func(), q *batchQueue[int]){
		"closed":    func(_ func(), q *batchQueue[int]) { q.close() },
		"cancelled": func(cancel func(), q *batchQueue[int]) { cancel(); q.close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				q := newBatchQueue[int](queueLimits{})
				var c consumers
				c.of(ctx, q)
				want := []intDelta{push(t, q, 1)}
				synctest.Wait()
				end(cancel, q)
				synctest.Wait()
				if c.running.Load() != 0 || q.checks != nil {
					t.Errorf("%d consumers run; checks: %t", c.running.Load(), q.checks != nil)
				}
				same(t, "taken", lines(slices.Clone(c.taken)), lines(want))
			})
		})
	}
}

// The runtime may refer to the queue of an informer that nothing else refers to, by its timer.
func TestAClosedQueueDoesNotReferToItsInformer(t *testing.T) {
	q := newBatchQueue[int](queueLimits{})
	refersTo := func(large *[1 << 20]byte) weak.Pointer[[1 << 20]byte] {
		q.startConsumer = func() { clear(large[:]) }
		return weak.Make(large)
	}
	large := refersTo(new([1 << 20]byte))
	push(t, q, 1)
	q.close()
	runtime.GC()
	if large.Value() != nil {
		t.Error("what the consumer refers to is not freed")
	}
	runtime.KeepAlive(q)
}
