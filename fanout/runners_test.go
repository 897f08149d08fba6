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

// Whichever handlers block, at whichever place in the queue: the others are called.
func TestP7_HandlersThatBlockDelayNoOtherHandler(t *testing.T) {
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
						t.Fatalf("blocked %07b, round %d: handler %d has seen %d events, not %d", blocked, round, h, got, want)
					}
				}
			}
			close(gate)
			synctest.Wait()
			for h := range handlers {
				if got := seen[h].Load(); got != rounds {
					t.Errorf("blocked %07b: handler %d has seen %d events in the end, not %d", blocked, h, got, rounds)
				}
			}
			stop(t, f)
		})
	}
}

// A callback that ends its goroutine ends a runner. The handlers queued behind it are called all
// the same, and so is its own handler, with the next event.
func TestP7_HandlersThatEndTheirGoroutineEndNobodysTurn(t *testing.T) {
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

// A handler may remove one that is queued behind it, and add one.
func TestHandlersMayJoinAndLeaveFromACallback(t *testing.T) {
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
		same(t, "seen by the late one", late.all(), []string{"+b 2"})
		stop(t, f)
	})
}

// TestBudget_GoroutinesAnEvent holds how many goroutines are started to tell ten idle
// handlers of an event: on one processor two, one that calls them all and one that is started
// in case that one of them blocks.
func TestBudget_GoroutinesAnEvent(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const handlers = 10
	f := fanout.New[int](fanout.Options{})
	var told sync.WaitGroup
	for range handlers {
		join(t, f, opts{Handle: func(event) { told.Done() }})
	}
	each := goroutinesAnEvent(t, &told, handlers,
		func(round int) { f.Publish(uint64(round+1), []event{add("a", round)}) })
	if each > 2.2 {
		t.Errorf("%.2f goroutines an event with %d handlers, at most 2.2", each, handlers)
	}
	stop(t, f)
}

// goroutinesAnEvent publishes events to handlers that are idle, and gives how many goroutines each of them started.
func goroutinesAnEvent(t *testing.T, told *sync.WaitGroup, handlers int, publish func(round int)) float64 {
	const rounds = 200
	before := started()
	for round := range rounds {
		told.Add(handlers)
		publish(round)
		told.Wait()
		for range 100 {
			runtime.Gosched() // until all of them are idle again
		}
	}
	each := float64(started()-before) / rounds
	t.Logf("%.2f goroutines an event with %d handlers", each, handlers)
	return each
}

func started() uint64 {
	s := []metrics.Sample{{Name: "/sched/goroutines-created:goroutines"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// What one handler has brought into the processor's cache, the next finds there: nobody goes on to the end of the
// chain while others wait.
func TestHandlersTakeTurnsBatchByBatch(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // one runner goes round
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
			t.Errorf("the handlers were given %v batches of %d", at, batches)
		}
		if apart > 2 {
			t.Errorf("one was %d batches ahead of another", apart)
		}
		stop(t, f)
	})
}
