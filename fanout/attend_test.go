package fanout_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/mirador-k8s/mirador/fanout"
	"github.com/mirador-k8s/mirador/object"
)

// attended is a Fanout whose work is to publish what it is sent.
type attended struct {
	*fan
	batches chan []event
	seq     uint64
	over    sync.WaitGroup
	calls   chan struct{} // to who stands by
}

// attend lets somebody stand by, or nobody.
func attend(f *fan, standsBy bool) *attended {
	a := &attended{fan: f, batches: make(chan []event), calls: make(chan struct{})}
	a.over.Add(1)
	if standsBy {
		a.over.Go(func() {
			for range a.calls {
				f.Relieve()
			}
		})
	}
	f.Attend(a)
	return a
}

func (a *attended) Work() bool {
	batch, more := <-a.batches
	if more {
		a.seq++
		a.PublishHere(a.seq, batch)
	}
	return more
}

func (a *attended) StandBy() bool {
	select {
	case a.calls <- struct{}{}:
		return true
	default:
		return false
	}
}

func (a *attended) Over() { a.over.Done() }

func (a *attended) end(t *testing.T) {
	close(a.batches)
	stop(t, a.fan) // nobody calls for him after that
	close(a.calls)
	a.over.Wait()
}

// worker is work that nobody stands by for.
type worker struct {
	work func() bool
	over func()
}

func (w worker) Work() bool    { return w.work() }
func (w worker) StandBy() bool { return false }
func (w worker) Over()         { w.over() }

// Whichever handlers block that the worker itself calls: the others are called, and the work goes on.
func TestP7_HandlersThatBlockHoldNoWork(t *testing.T) {
	for _, standsBy := range []bool{false, true} {
		for _, handlers := range []int{1, 2, 6} {
			for blocked := range 1 << handlers {
				synctest.Test(t, func(t *testing.T) { blockSome(t, standsBy, handlers, blocked) })
			}
		}
	}
}

// blockSome lets those handlers block whose bit is set.
func blockSome(t *testing.T, standsBy bool, handlers, blocked int) {
	const rounds = 3
	a := attend(fanout.New[int](fanout.Options{}), standsBy)
	gate := make(chan struct{})
	seen := make([]atomic.Int64, handlers)
	for h := range handlers {
		join(t, a.fan, opts{Name: fmt.Sprint(h), Handle: func(event) {
			if blocked&(1<<h) != 0 {
				<-gate
			}
			seen[h].Add(1)
		}})
	}
	for round := range rounds {
		a.batches <- []event{add("a", round)} // somebody works
		synctest.Wait()
		for h := range handlers {
			want := int64(round + 1)
			if blocked&(1<<h) != 0 {
				want = 0
			}
			if got := seen[h].Load(); got != want {
				t.Fatalf("blocked %b of %d, round %d: handler %d has seen %d events, not %d", blocked, handlers, round, h, got, want)
			}
		}
	}
	close(gate)
	synctest.Wait()
	for h := range handlers {
		if got := seen[h].Load(); got != rounds {
			t.Errorf("blocked %b of %d: handler %d has seen %d events in the end, not %d", blocked, handlers, h, got, rounds)
		}
	}
	a.end(t)
}

// A callback that panics or ends its goroutine, which is the worker's, ends neither the work
// nor anybody's turn.
func TestP7_HandlersThatEndTheWorkersGoroutineDoNotEndTheWork(t *testing.T) {
	const handlers = 4
	for wild := range 1 << handlers {
		synctest.Test(t, func(t *testing.T) {
			a := attend(fanout.New[int](fanout.Options{OnPanic: func(string, object.Key, any, []byte) {}}), wild%2 == 0)
			recorders := make([]recorder, handlers)
			for h := range handlers {
				join(t, a.fan, opts{Name: fmt.Sprint(h), Handle: func(e event) {
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
			want := []string{}
			for v := range 6 {
				a.batches <- []event{add("a", v)}
				if want = append(want, fmt.Sprintf("+a %d", v)); v%2 == 0 {
					synctest.Wait()
				}
			}
			synctest.Wait()
			for h := range handlers {
				same(t, fmt.Sprintf("seen by %d of %04b", h, wild), recorders[h].all(), want)
			}
			a.end(t)
		})
	}
}

// What the last call of the work published is told, whether it returns, or ends its goroutine.
func TestTheLastWorkIsTold(t *testing.T) {
	for name, leave := range map[string]func(){"returns": func() {}, "ends its goroutine": runtime.Goexit} {
		synctest.Test(t, func(t *testing.T) {
			f := fanout.New[int](fanout.Options{})
			r := &recorder{}
			join(t, f, opts{Handle: r.handle})
			synctest.Wait()
			var over sync.WaitGroup
			over.Add(1)
			f.Attend(worker{func() bool {
				f.PublishHere(1, []event{add("a", 1)})
				leave()
				return false
			}, over.Done})
			over.Wait()
			synctest.Wait()
			same(t, "told by work that "+name, r.all(), []string{"+a 1"})
			// There may be other work afterwards.
			over.Add(1)
			f.Attend(worker{func() bool {
				f.PublishHere(2, []event{add("b", 2)})
				return false
			}, over.Done})
			over.Wait()
			synctest.Wait()
			same(t, "told afterwards", r.all(), []string{"+a 1", "+b 2"})
			stop(t, f)
		})
	}
}

// Others publish beside the work: every handler sees everything, in order.
func TestP3_WorkAndOthersPublishInOneOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const handlers, rounds = 3, 500
		f := fanout.New[int](fanout.Options{})
		recorders := make([]recorder, handlers)
		for h := range handlers {
			join(t, f, opts{Handle: recorders[h].handle})
		}
		here, there, next := make(chan int), make(chan int), make(chan struct{})
		var over sync.WaitGroup
		over.Add(2)
		f.Attend(worker{func() bool {
			v, more := <-here
			if more {
				f.PublishHere(uint64(v+1), []event{add("a", v)})
				next <- struct{}{}
			}
			return more
		}, over.Done})
		go func() {
			defer over.Done()
			for v := range there {
				f.Publish(uint64(v+1), []event{add("a", v)})
				next <- struct{}{}
			}
		}()
		want := []string{}
		for v := range rounds {
			if v*v%7 < 3 {
				here <- v
			} else {
				there <- v
			}
			<-next // one publisher at a time
			want = append(want, fmt.Sprintf("+a %d", v))
		}
		close(here)
		close(there)
		over.Wait()
		synctest.Wait()
		for h := range handlers {
			same(t, fmt.Sprintf("seen by %d", h), recorders[h].all(), want)
		}
		stop(t, f)
	})
}

// TestBudget_GoroutinesOfAttendedWork holds how many goroutines are started where who
// publishes calls the handlers: one that stands by, or none where somebody does already.
func TestBudget_GoroutinesOfAttendedWork(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const handlers = 10
	for standsBy, most := range map[bool]float64{false: 1.1, true: 0.1} {
		f := fanout.New[int](fanout.Options{})
		var told sync.WaitGroup
		for range handlers {
			join(t, f, opts{Handle: func(event) { told.Done() }})
		}
		a := attend(f, standsBy)
		each := goroutinesAnEvent(t, &told, handlers, func(round int) { a.batches <- []event{add("a", round)} })
		if each > most {
			t.Errorf("%.2f goroutines an event with %d handlers, somebody stands by: %t; at most %.1f", each, handlers, standsBy, most)
		}
		a.end(t)
	}
}
