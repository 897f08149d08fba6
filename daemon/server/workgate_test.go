package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// testWorkGate runs a test on a new gate in fake time. Then it waits for the goroutines of the test and checks that
// the gate is empty.
func testWorkGate(t *testing.T, processors int, test func(t *testing.T, g *workGate, wg *sync.WaitGroup)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := newWorkGate(processors)
		var wg sync.WaitGroup
		test(t, g, &wg)
		wg.Wait()
		if !g.empty() {
			t.Errorf("the gate is not empty: %+v", g)
		}
	})
}

// scanFor uses a processor for a time, in turns of the gate.
func scanFor(w *work, d time.Duration) error {
	const step = 500 * time.Microsecond
	for ; d > 0; d -= step {
		time.Sleep(step)
		if err := w.pace(); err != nil {
			return err
		}
	}
	return nil
}

// scans starts n requests of a client that need time d each, and calls each with their errors.
func scans(t *testing.T, g *workGate, wg *sync.WaitGroup, client clientKey, n int, d time.Duration, each func(error)) {
	t.Helper()
	for range n {
		wg.Go(func() {
			w, err := g.begin(t.Context(), client)
			if err == nil {
				err = scanFor(w, d)
				w.end()
			}
			each(err)
		})
	}
	synctest.Wait()
}

// empty reports whether no request is in the gate.
func (g *workGate) empty() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running == 0 && g.busy == 0 && len(g.clients) == 0 && g.requests.empty()
}

func TestShortWorkFinishesAtOnceBesideManyScans(t *testing.T) {
	for _, client := range []clientKey{"scanner", "another"} {
		testWorkGate(t, 2, func(t *testing.T, g *workGate, wg *sync.WaitGroup) {
			var failed atomic.Int64
			scans(t, g, wg, "scanner", 50, 40*time.Millisecond, func(err error) {
				if err != nil {
					failed.Add(1)
				}
			})
			time.Sleep(300 * time.Millisecond) // each has had its first turn
			begun := time.Now()
			w, err := g.begin(t.Context(), client)
			if err != nil {
				t.Fatal(err)
			}
			if err := scanFor(w, time.Millisecond); err != nil {
				t.Fatal(err)
			}
			w.end()
			if took := time.Since(begun); took > 2*workSlice {
				t.Errorf("1 ms of work of %q took %v beside 50 scans", client, took)
			}
			wg.Wait()
			if failed.Load() > 0 {
				t.Errorf("%d scans failed", failed.Load())
			}
		})
	}
}

func TestClientsGetEqualSharesHoweverManyScansEachHas(t *testing.T) {
	testWorkGate(t, 2, func(t *testing.T, g *workGate, wg *sync.WaitGroup) {
		ctx, cancel := context.WithCancel(t.Context())
		var used [2]atomic.Int64
		for client, n := range []int{40, 1} {
			for range n {
				wg.Go(func() {
					w, err := g.begin(ctx, clientKey(strconv.Itoa(client)))
					if err != nil {
						return
					}
					defer w.end()
					for scanFor(w, time.Millisecond) == nil {
						used[client].Add(1)
					}
				})
			}
		}
		time.Sleep(4 * time.Second)
		cancel()
		wg.Wait()
		if many, one := used[0].Load(), used[1].Load(); many < 1800 || one < 1800 {
			t.Errorf("in 4 s the client with 40 scans used %d ms and the client with one %d ms", many, one)
		}
	})
}

func TestNoMoreWorkRunsThanThereAreSlots(t *testing.T) {
	testWorkGate(t, 4, func(t *testing.T, g *workGate, wg *sync.WaitGroup) {
		var running, most atomic.Int64
		for range 30 {
			wg.Go(func() {
				w, err := g.begin(t.Context(), "one")
				if err != nil {
					t.Error(err)
					return
				}
				defer w.end()
				for range 20 {
					most.Store(max(most.Load(), running.Add(1)))
					time.Sleep(time.Millisecond)
					running.Add(-1)
					if err := w.pace(); err != nil {
						t.Error(err)
					}
					w.leave()
					time.Sleep(time.Millisecond) // its client reads
					if err := w.resume(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if n := most.Load(); n != 3 {
			t.Errorf("%d requests ran at a time with 4 processors, want 3", n)
		}
	})
}

func TestOnlyRequestUsesAllProcessorsUntilAnotherArrives(t *testing.T) {
	testWorkGate(t, 2, func(t *testing.T, g *workGate, wg *sync.WaitGroup) {
		list, err := g.begin(t.Context(), "one")
		if err != nil {
			t.Fatal(err)
		}
		list.leave()
		ctx, cancel := context.WithCancel(t.Context())
		var running, most atomic.Int64
		for range 4 {
			part := list.part(ctx)
			wg.Go(func() {
				for part.resume() == nil {
					most.Store(max(most.Load(), running.Add(1)))
					time.Sleep(workSlice)
					running.Add(-1)
					part.leave()
				}
			})
		}
		// mostIn returns how many parts of the list run at a time during d.
		mostIn := func(d time.Duration) int64 {
			time.Sleep(workSlice) // until earlier turns have ended
			most.Store(0)
			time.Sleep(d)
			return most.Load()
		}
		if n := mostIn(time.Second); n != 2 {
			t.Errorf("%d parts of the only request run at a time on 2 processors, want 2", n)
		}
		scan, err := g.begin(t.Context(), "another")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			scanFor(scan, time.Second) // fails only after the test
			scan.end()
		}()
		if n := mostIn(time.Second); n != 1 {
			t.Errorf("%d parts of a list run at a time beside a scan, want 1", n)
		}
		time.Sleep(2 * time.Second)
		if n := mostIn(time.Second); n != 2 {
			t.Errorf("%d parts of a list run at a time after the scan, want 2", n)
		}
		cancel()
		wg.Wait()
		list.end()
	})
}

// If long scans ran side by side, all of them would be late.
func TestEqualScansFinishInOrderOfArrival(t *testing.T) {
	testWorkGate(t, 2, func(t *testing.T, g *workGate, wg *sync.WaitGroup) {
		begun := time.Now()
		var mu sync.Mutex
		var done []time.Duration
		scans(t, g, wg, "one", 10, time.Second, func(err error) {
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			done = append(done, time.Since(begun))
		})
		wg.Wait()
		if done[0] > 3*time.Second || done[9] > 11*time.Second {
			t.Errorf("of ten scans of 1 s the first took %v and the last %v", done[0], done[9])
		}
	})
}

func TestRequestThatWaitsTooLongIs429WithRetryAfter(t *testing.T) {
	testWorkGate(t, 1, func(t *testing.T, g *workGate, _ *sync.WaitGroup) {
		holder, err := g.begin(t.Context(), "one")
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		_, err = g.begin(t.Context(), "another")
		var status apierrors.APIStatus
		if !errors.As(err, &status) || status.Status().Code != http.StatusTooManyRequests ||
			status.Status().Details.RetryAfterSeconds == 0 || time.Since(begun) != maxWorkWait {
			t.Errorf("after %v: %v, want 429 with Retry-After after %v", time.Since(begun), err, maxWorkWait)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		begun = time.Now()
		if _, err = g.begin(ctx, "gone"); !errors.Is(err, context.Canceled) || time.Since(begun) != time.Second {
			t.Errorf("a request that was cancelled after a second waited for %v: %v", time.Since(begun), err)
		}
		holder.end()
	})
}

func TestWaitingRequestsAreBoundedPerClient(t *testing.T) {
	testWorkGate(t, 1, func(t *testing.T, g *workGate, wg *sync.WaitGroup) {
		var ok, refused atomic.Int64
		scans(t, g, wg, "many", 2*maxWork, time.Millisecond, func(err error) {
			if apierrors.IsTooManyRequests(err) {
				refused.Add(1)
			} else if err == nil {
				ok.Add(1)
			}
		})
		if n := refused.Load(); n != 2*maxWork-maxWork/2 {
			t.Errorf("%d of %d concurrent requests were refused", n, 2*maxWork)
		}
		w, err := g.begin(t.Context(), "another")
		if err != nil {
			t.Fatal(err)
		}
		w.end()
		wg.Wait()
		if ok.Load() != maxWork/2 {
			t.Errorf("%d requests were answered, want %d", ok.Load(), maxWork/2)
		}
	})
}
