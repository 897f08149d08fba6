package fanout_test

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/mirador-k8s/mirador/fanout"
	"github.com/mirador-k8s/mirador/object"
)

// Every subset of the handlers blocks in turn; the others must be called.
func TestP7_BlockedHandlersDelayNoOther(t *testing.T) {
	const handlers, rounds = 7, 3
	for blocked := range 1 << handlers {
		synctest.Test(t, func(t *testing.T) {
			f := fanout.New[int](fanout.Options{})
			gate := make(chan struct{})
			seen := make([]atomic.Int64, handlers)
			for h := range handlers {
				join(t, f, opts{Name: fmt.Sprint(h), Handle: func(event) {
					if blocked&(1<<h) != 0 {
						<-gate
					}
					seen[h].Add(1)
				}})
			}
			for round := range rounds {
				f.Publish(uint64(round+1), []event{add("a", round)})
				synctest.Wait()
				for h := range handlers {
					want := int64(round + 1)
					if blocked&(1<<h) != 0 {
						want = 0
					}
					if got := seen[h].Load(); got != want {
						t.Fatalf("blocked %07b, round %d: handler %d has seen %d events, want %d", blocked, round, h, got, want)
					}
				}
			}
			close(gate)
			synctest.Wait()
			for h := range handlers {
				if got := seen[h].Load(); got != rounds {
					t.Errorf("blocked %07b: handler %d has seen %d events at the end, want %d", blocked, h, got, rounds)
				}
			}
			stop(t, f)
		})
	}
}

// A callback that ends its goroutine ends a runner. The handlers queued behind it must be called
// nevertheless, and so must its own handler, with the next event.
func TestP7_HandlersThatEndTheirRunnerDelayNoOther(t *testing.T) {
	const handlers = 5
	for wild := range 1 << handlers {
		synctest.Test(t, func(t *testing.T) {
			f := fanout.New[int](fanout.Options{OnPanic: func(string, object.Key, any, []byte) {}})
			recorders := make([]recorder, handlers)
			for h := range handlers {
				join(t, f, opts{Name: fmt.Sprint(h), Handle: func(e event) {
					recorders[h].handle(e)
					switch {
					case wild&(1<<h) == 0:
					case e.New%2 == 0:
						runtime.Goexit()
					default:
						panic("wild")
					}
				}})
			}
			f.Publish(1, []event{add("a", 0), add("b", 1)})
			f.Publish(2, []event{add("c", 2)})
			synctest.Wait()
			f.Publish(3, []event{add("d", 3)})
			synctest.Wait()
			for h := range handlers {
				same(t, fmt.Sprintf("seen by %d of %05b", h, wild), recorders[h].all(), []string{"+a 0", "+b 1", "+c 2", "+d 3"})
			}
			stop(t, f)
		})
	}
}

// A handler removes one that is queued behind it, and adds another.
func TestHandlersCanJoinAndLeaveInCallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout.New[int](fanout.Options{})
		late := &recorder{}
		var once sync.Once
		var removed *sub
		join(t, f, opts{Handle: func(event) {
			once.Do(func() {
				removed.Remove()
				join(t, f, opts{Name: "late", Handle: late.handle})
			})
		}})
		removed = join(t, f, opts{Handle: func(event) {}})
		f.Publish(1, []event{add("a", 1)})
		synctest.Wait()
		<-removed.Done()
		f.Publish(2, []event{add("b", 2)})
		synctest.Wait()
		same(t, "seen by the late handler", late.all(), []string{"+b 2"})
		stop(t, f)
	})
}

// On one processor, an event for ten idle handlers starts two goroutines: one that calls all of
// them, and one that takes over if a handler blocks.
func TestBudget_GoroutinesPerEvent(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const handlers = 10
	f := fanout.New[int](fanout.Options{})
	var called sync.WaitGroup
	for range handlers {
		join(t, f, opts{Handle: func(event) { called.Done() }})
	}
	each := goroutinesPerEvent(t, &called, handlers,
		func(round int) { f.Publish(uint64(round+1), []event{add("a", round)}) })
	if each > 2.2 {
		t.Errorf("%.2f goroutines per event with %d handlers, want at most 2.2", each, handlers)
	}
	stop(t, f)
}

// goroutinesPerEvent publishes events to idle handlers and returns how many goroutines each event started.
func goroutinesPerEvent(t *testing.T, called *sync.WaitGroup, handlers int, publish func(round int)) float64 {
	const rounds = 200
	before := started()
	for round := range rounds {
		called.Add(handlers)
		publish(round)
		called.Wait()
		for range 100 {
			runtime.Gosched() // until all handlers are idle again
		}
	}
	each := float64(started()-before) / rounds
	t.Logf("%.2f goroutines per event with %d handlers", each, handlers)
	return each
}

func started() uint64 {
	s := []metrics.Sample{{Name: "/sched/goroutines-created:goroutines"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// All handlers receive a batch before any receives the next, so that the batch is still in the processor's cache.
func TestHandlersTakeTurnsByBatch(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // one runner calls all handlers
	synctest.Test(t, func(t *testing.T) {
		const batches, handlers = 50, 5
		f := fanout.New[int](fanout.Options{})
		var mu sync.Mutex
		at, apart := make([]int, handlers), 0
		for h := range handlers {
			join(t, f, opts{Handle: func(event) {
				mu.Lock()
				defer mu.Unlock()
				at[h]++
				apart = max(apart, at[h]-slices.Min(at))
			}})
		}
		synctest.Wait()
		for i := range batches {
			f.Publish(uint64(i+1), []event{add("a", i)})
		}
		synctest.Wait()
		if slices.Min(at) != batches || slices.Max(at) != batches {
			t.Errorf("the handlers received %v batches, want %d each", at, batches)
		}
		if apart > 2 {
			t.Errorf("one handler was %d batches ahead of another, want at most 2", apart)
		}
		stop(t, f)
	})
}
