package fanout

import (
	"errors"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/mirador-k8s/mirador/object"
)

// wake makes sure that the handler looks at everything that was done before the
// call, on the runner that is calling it now or on another one.
func (s *Subscription[T]) wake() {
	if s.notify() {
		s.start()
	}
}

// notify is like wake, but leaves it to the caller to schedule the handler where start is true.
func (s *Subscription[T]) notify() (start bool) {
	if s.activity.Load() == notified {
		return false // it has not looked yet
	}
	return s.activity.Swap(notified) == idle
}

// start queues the handler for the runners.
func (s *Subscription[T]) start() {
	s.fan.schedule(handlerList[T]{s, s})
}

// run delivers until there is nothing left.
func (s *Subscription[T]) run() {
	for s.turn() {
	}
}

// turn delivers a batch, or a piece of a state, and reports whether there is another in hand: the
// subscription is then to be given a further turn, and others may have theirs before it. With each handler
// going on to the end of the chain, what the first had brought into the processor's cache was gone when the
// last came to it: a tenth of the cost of an event for 50 handlers.
//
// It declares itself running before it looks, and idle only if nobody notified it since: so either it sees
// what was published, or the publisher sees that it is idle and starts another.
//
// One deferred function for the batch, and one atomic operation for each callback:
// with a function of its own and three such operations for each, an empty handler
// cost 82 ns, which 50 handlers pay 50 times.
func (s *Subscription[T]) turn() (more bool) {
	calling, ended := false, false
	defer func() {
		if ended {
			return
		}
		defer func() { // whatever those do who are told: they may end the goroutine too
			if !s.crashing {
				s.start() // go on with the next event
			}
		}()
		if calling {
			s.delivered.Add(1)
			s.failed(s.work[s.next-1].Key, recover())
		}
	}()
	for delivered := false; ; {
		s.activity.Store(running)
		for s.take() {
			if delivered {
				ended = true
				s.activity.Store(notified)
				return true
			}
			s.unclocked = 0
			// All of its state is in the subscription, so that it can go on where it ended, on this
			// goroutine or, where that was ended, on another.
			for s.next < len(s.work) && !s.removed.Load() {
				ev := &s.work[s.next]
				s.next++
				if s.unclocked > 0 {
					s.unclocked--
				} else {
					s.readClock()
				}
				calling = true
				s.handle(ev)
				calling = false
				s.delivered.Add(1)
			}
			delivered = true
		}
		if s.removed.Load() {
			ended = true
			s.finish()
			return false
		}
		if s.activity.CompareAndSwap(running, idle) {
			ended = true
			return false // from here on another goroutine may own the subscription
		}
	}
}

const (
	clockStride = 32
	quickStride = 32 * time.Microsecond
)

// readClock notes when a callback began. Read for each callback the clock takes
// as long as calling an empty handler, so while callbacks are
// quick only one in 32 of a batch reads it.
func (s *Subscription[T]) readClock() {
	now := s.fan.now()
	if now-s.started.Swap(now) < int64(quickStride) {
		s.unclocked = clockStride - 1
	}
}

var errGoexit = errors.New("the handler ended its goroutine with runtime.Goexit")

// failed reports a callback that did not return. Without a recovered value it
// was ended by runtime.Goexit, for a panic always has one.
func (s *Subscription[T]) failed(key object.Key, recovered any) {
	s.panics.Add(1)
	if own := s.onPanic; own != nil {
		s.telling(key, func() { own(recovered) })
	}
	exited := recovered == nil
	if exited {
		recovered = errGoexit
	}
	s.report(key, recovered, debug.Stack())
	if crash := s.fan.opts.Crash; !exited && crash != nil && crash() {
		s.crashing = true
		panic(recovered)
	}
}

func (s *Subscription[T]) report(key object.Key, recovered any, stack []byte) {
	if onPanic := s.fan.opts.OnPanic; onPanic != nil {
		s.telling(key, func() { onPanic(s.Name(), key, recovered, stack) })
		return
	}
	slog.Error("a handler panicked", "handler", s.Name(), "key", string(key), "panic", recovered, "stack", string(stack))
}

// telling calls who is told of a panic, and survives one of his own.
func (s *Subscription[T]) telling(key object.Key, tell func()) {
	defer func() {
		if again := recover(); again != nil {
			slog.Error("the report of a panicking handler panicked", "handler", s.Name(), "key", string(key), "panic", again)
		}
	}()
	tell()
}
