package fanout

import "sync"

// runQueue holds the handlers that have events to deliver and no goroutine that calls them. Runners, goroutines
// that exist only while the queue is not empty, take one handler after the other from it.
//
// One invariant isolates the handlers from each other (P7): while the queue is not empty, at least one runner that
// is not inside a callback is about to look at it. Such a runner is called searching. A runner cannot know how long
// a callback will take, so before it calls a handler while others are queued and no other runner is searching, it
// starts another runner. A handler that blocks therefore occupies one runner and delays no other handler, and
// quick handlers, however many, share two runners.
type runQueue[T any] struct {
	mu        sync.Mutex
	handlers  handlerList[T]
	searching int // runners that will look at the queue before they call a handler
}

// handlerList is a list of handlers, linked through themselves. A handler is in at most one list: whoever moves it
// from idle to notified puts it there.
type handlerList[T any] struct{ first, last *Subscription[T] }

func (l *handlerList[T]) add(s *Subscription[T]) {
	if l.first == nil {
		l.first, l.last = s, s
		return
	}
	l.last.nextReady, l.last = s, s
}

func (l *handlerList[T]) take() *Subscription[T] {
	s := l.first
	if s == nil {
		return nil
	}
	l.first, s.nextReady = s.nextReady, nil
	if l.first == nil {
		l.last = nil // the list must not keep a removed handler alive
	}
	return s
}

// schedule queues handlers, in this order, and starts a runner unless one is searching.
func (f *Fanout[T]) schedule(ready handlerList[T]) {
	if ready.first == nil {
		return
	}
	if run := f.opts.Go; run != nil {
		for s := ready.take(); s != nil; s = ready.take() {
			run(s.Name(), s.run)
		}
		return
	}
	if f.runQueue.add(ready) {
		go f.runFn()
	}
}

// add appends handlers to the queue and reports whether the caller must start a runner.
func (q *runQueue[T]) add(ready handlerList[T]) (start bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.handlers.first == nil {
		q.handlers = ready
	} else {
		q.handlers.last.nextReady, q.handlers.last = ready.first, ready.last
	}
	if q.searching == 0 {
		q.searching, start = 1, true
	}
	return start
}

// next gives a runner the first handler, or nil if the runner may end. afterCallback says that the runner comes from
// a callback, after which it searches again; more is the handler that it called, if that has more events, and goes
// to the end of the queue. With the result the runner no longer searches. Where that would break the invariant,
// start is true: the caller must start another runner before it calls the handler.
func (q *runQueue[T]) next(afterCallback bool, more *Subscription[T]) (s *Subscription[T], start bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if afterCallback {
		q.searching++
	}
	if more != nil {
		q.handlers.add(more)
	}
	s = q.handlers.take()
	start = q.searching == 1 && q.handlers.first != nil
	if !start { // a runner that is started searches in place of this one
		q.searching--
	}
	return s, start
}

// runner calls handlers while any are queued. If a callback ends the goroutine, the invariant still holds, because
// a runner inside a callback is not searching; turn queues the handler again.
func (f *Fanout[T]) runner() {
	var more *Subscription[T]
	for afterCallback := false; ; afterCallback = true {
		s, start := f.runQueue.next(afterCallback, more)
		if start {
			go f.runFn()
		}
		if s == nil {
			return
		}
		more = nil
		if s.turn() {
			more = s
		}
	}
}

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
