package fanout

import "sync"

// runQueue schedules handlers: it holds the handlers that have events to deliver and that no goroutine is calling.
// Runners, goroutines that exist only while the queue is not empty, take one handler after the other from it.
//
// A handler is in one of three states, kept in Subscription.activity:
//
//   - idle: it is not queued, and no runner calls it.
//   - running: a runner calls it and has read the end of the chain, or will, since the last notification.
//   - notified: it is queued, or a runner calls it and must check the chain once more before the handler is idle.
//
// A goroutine that has something for a handler (a batch, a mark, a resync, a removal) first makes it visible and then
// sets the state to notified. If the handler was idle, that goroutine queues it. If not, a runner already has the
// handler or will take it, and checks again. In turn, a runner sets the state to running before it reads the chain,
// and sets it to idle only if it is still running. So either the runner sees the new batch, or the publisher sees
// that the handler is idle and queues it; no notification is lost, and no two runners call the same handler.
//
// A runner gives a handler one turn, which is one batch or one piece of a state. If there is more, the handler goes
// to the end of the queue, so that all handlers advance along the chain at about the same pace.
//
// One invariant isolates the handlers from each other (P7): while the queue is not empty, at least one runner is
// searching, which means that it will take the next handler from the queue without calling another one first. A
// runner cannot know how long a callback will take, so before it calls a handler while others are queued and no other
// runner is searching, it starts another runner. A handler that blocks therefore occupies one runner and delays no
// other handler, and any number of quick handlers share two runners. A callback that ends its goroutine ends a runner
// that was not searching, so the invariant holds; turn queues the handler again.
type runQueue[T any] struct {
	mu        sync.Mutex
	handlers  handlerList[T]
	searching int // runners that will take from the queue before they call a handler
}

// The values of Subscription.activity. The goroutine that changes idle to notified must queue the handler.
const (
	idle = iota
	running
	notified // also the final state, after the handler was removed
)

// handlerList is a list of handlers, linked through Subscription.nextReady. A handler is in at most one list.
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

// schedule queues handlers in the given order and starts a runner unless one is searching.
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

// next takes the first handler from the queue for a runner, or returns nil if the runner must end. afterCallback is
// true if the runner has just returned from a callback and was therefore not counted as searching. more is the
// handler that it called, if that has more events; next appends it to the queue. After next, the runner is no longer
// searching. If that would break the invariant, start is true, and the caller must start another runner before it
// calls the handler.
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
	if !start { // otherwise the new runner searches in place of this one
		q.searching--
	}
	return s, start
}

// runner calls handlers until the queue is empty.
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

// wake makes sure that a runner processes everything that the handler was given before the call.
func (s *Subscription[T]) wake() {
	if s.notify() {
		s.start()
	}
}

// notify is like wake, but does not queue the handler. If start is true, the caller must schedule it.
func (s *Subscription[T]) notify() (start bool) {
	if s.activity.Load() == notified {
		return false // the runner has not checked the chain since the last notification
	}
	return s.activity.Swap(notified) == idle
}

// start queues the handler for the runners.
func (s *Subscription[T]) start() {
	s.fan.schedule(handlerList[T]{s, s})
}

// run delivers until there is nothing left. It is for Options.Go.
func (s *Subscription[T]) run() {
	for s.turn() {
	}
}
