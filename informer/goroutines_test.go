package informer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/reflector"
	"github.com/mirador-k8s/mirador/source"
)

// Single changes and bursts reach the handlers in the order in which they came.
func TestP2_SingleChangesAndBurstsKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := make1(t, newFeed(state{1, nil}))
		rec := &recorder{}
		subscribe(t, r, rec, nil)
		r.run(t)
		var want []string
		for v, round := 2, 0; round < 200; round++ {
			var burst []source.Change[*thing]
			for range 1 + round*round%13 {
				burst = append(burst, put("a", v, "u"))
				if v == 2 {
					want = append(want, "Added a new=2")
				} else {
					want = append(want, fmt.Sprintf("Updated a old=%d new=%d", v-1, v))
				}
				v++
			}
			r.say(burst...) // while the previous change may still be on its way
		}
		synctest.Wait()
		same(t, "events", rec.lines(), want)
	})
}

// While another goroutine holds the store, changes wait in the queue, and reading goes on.
func TestAChangeThatFindsTheStoreBusyWaitsInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := make1(t, newFeed(state{1, []object.Item[*thing]{item("a", 1, "u")}}))
		rec := &recorder{}
		subscribe(t, r, rec, nil)
		r.run(t)
		entered, leave := make(chan struct{}), make(chan struct{})
		indexed := make(chan error)
		go func() {
			indexed <- r.AddIndexes(informer.Indexes[*thing]{"slow": func(*thing) ([]string, error) {
				select {
				case <-entered: // of the objects to come
				default:
					close(entered)
					<-leave
				}
				return nil, nil
			}})
		}()
		<-entered
		for v := 2; v < 6; v++ {
			r.say(put("a", v, "u"))
		}
		r.say(bookmark(5)) // it was read, or this would wait
		if h := r.Health(); h.Reflector.Version != "5" || r.Reader().Version() != "1" {
			t.Errorf("read up to %s, stored up to %s", h.Reflector.Version, r.Reader().Version())
		}
		close(leave)
		if err := <-indexed; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		same(t, "events", rec.lines(), []string{"Added a new=1 initial", "Updated a old=1 new=2", "Updated a old=2 new=3",
			"Updated a old=3 new=4", "Updated a old=4 new=5"})
	})
}

// Handlers that block stop neither reading nor storing nor other handlers.
func TestP7_ReadingGoesOnWhileHandlersBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := make1(t, newFeed(state{1, nil}))
		leave := make(chan struct{})
		stuck := &recorder{on: func(object.Event[*thing]) { <-leave }}
		quick := &recorder{}
		for range 3 {
			subscribe(t, r, &recorder{on: func(object.Event[*thing]) { <-leave }}, nil)
		}
		subscribe(t, r, stuck, nil)
		subscribe(t, r, quick, nil)
		r.run(t)
		want := []string{"Added a new=2"}
		for v := 2; v < 10; v++ {
			r.say(put("a", v, "u"))
			synctest.Wait()
			if v > 2 {
				want = append(want, fmt.Sprintf("Updated a old=%d new=%d", v-1, v))
			}
			same(t, "seen by the quick one", quick.lines(), want)
			same(t, "seen by the stuck one", stuck.lines(), want[:1])
		}
		close(leave)
		synctest.Wait()
		same(t, "seen by the stuck one in the end", stuck.lines(), want)
	})
}

// Changes that came along with the end of a stream are delivered at once: neither the pause before the next watch
// nor an OnProblem that waits for a handler delays them.
func TestP7_ChangesThatArriveWithTheEndOfAStreamAreDeliveredAtOnce(t *testing.T) {
	for name, end := range map[string]frame{
		"ended at once": {[]source.Change[*thing]{put("a", 2, "u")}, io.EOF},
		"failed": {[]source.Change[*thing]{put("a", 2, "u")},
			&source.Error{Reason: source.Unavailable, RetryAfter: time.Hour, Err: errors.New("busy")}},
		"expired": {[]source.Change[*thing]{put("a", 2, "u")},
			&source.Error{Reason: source.Expired, Err: errors.New("too old")}},
		"a bookmark later": {[]source.Change[*thing]{put("a", 2, "u"), bookmark(1)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				delivered := make(chan struct{})
				rec := &recorder{on: func(object.Event[*thing]) { close(delivered) }}
				r := make1(t, newFeed(state{1, nil}), func(o *options) { o.OnProblem = func(informer.Problem) { <-delivered } })
				subscribe(t, r, rec, nil)
				r.run(t)
				r.frames <- end
				synctest.Wait() // no time passes
				same(t, "events", rec.lines(), []string{"Added a new=2"})
			})
		})
	}
}

// leaving is a source whose watches end the goroutine that reads them.
type leaving struct {
	*feed
	closed atomic.Bool
}

func (l *leaving) Watch(context.Context, source.WatchOptions) (source.Watcher[*thing], error) {
	return l, nil
}
func (l *leaving) Read([]source.Change[*thing]) ([]source.Change[*thing], error) {
	runtime.Goexit()
	return nil, nil
}
func (l *leaving) Close() error { l.closed.Store(true); return nil }

// A source that ends the reader's goroutine, which is that of Run, stops the informer: its streams are closed, nothing
// else runs, and the store stays readable.
func TestP9_ASourceThatEndsItsGoroutineLeavesNothingOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &leaving{feed: newFeed(state{1, []object.Item[*thing]{item("a", 1, "u")}})}
		inf, err := informer.New[*thing](src, nil)
		if err != nil {
			t.Fatal(err)
		}
		before := goroutinesOfTheBubble()
		go func() {
			err := inf.Run(context.Background())
			t.Errorf("Run has returned: %v", err)
		}()
		synctest.Wait() // no time passes
		if n := goroutinesOfTheBubble() - before; n != 0 {
			t.Errorf("%d goroutines are left", n)
		}
		r := &running{feedOf: src.feed, Informer: inf, problems: &problems{}}
		same(t, "store", contents(r), []string{"a=1"})
		if !src.closed.Load() || inf.Health().Reflector.State != reflector.Stopped {
			t.Errorf("closed: %t, %s", src.closed.Load(), inf.Health().Reflector.State)
		}
		if err := inf.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// An informer at rest has one goroutine, the reader. A change starts the writer, which ends when no other follows.
func TestBudget_GoroutinesAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := make1(t, newFeed(state{1, []object.Item[*thing]{item("a", 1, "u")}}))
		rec := &recorder{}
		subscribe(t, r, rec, nil)
		synctest.Wait() // the handler has received the empty initial state
		before := goroutinesOfTheBubble()
		r.run(t)
		for v := 2; v < 20; v += 5 {
			r.say(put("a", v, "u"))
			r.say(put("a", v+1, "u"), put("b", v+2, "u"), put("c", v+3, "u"), put("d", v+4, "u"))
			synctest.Wait()
			if n := goroutinesOfTheBubble() - before; n != 2 {
				t.Errorf("%d goroutines after a change, not 2", n)
			}
			time.Sleep(3 * time.Second)
			synctest.Wait()
			if n := goroutinesOfTheBubble() - before; n != 1 {
				t.Errorf("%d goroutines at rest, not 1", n)
			}
		}
		if n := len(rec.lines()); n != 1+5*4 {
			t.Errorf("%d events were delivered", n)
		}
	})
}

// goroutinesOfTheBubble counts the goroutines that the test has started. runtime.NumGoroutine also counts those of
// finalizers, and briefly those that have just ended.
func goroutinesOfTheBubble() int {
	stacks := make([]byte, 1<<20)
	return bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte("synctest bubble"))
}
