package fanout

import "sync"

// turns is the line of handlers that have something to do and nobody who calls them,
// and how many runners are on their way to it.
//
// A goroutine for each of ten idle handlers meant ten starts for one event, and the
// tenth handler waited for nine of them. A runner takes one handler after the
// other. It does not know how long a callback will last: so whenever somebody is
// in the line, a runner is on its way there that is in no callback. A handler that
// blocks has its runner to itself.
type turns[T any] struct {
	mu      sync.Mutex
	line    line[T]
	looking int // runners that look at the line before they call anybody
}

// line is a list of handlers, linked through themselves. A handler is in one line at
// most: who moves it from idle to notified puts it there.
type line[T any] struct{ first, last *Subscription[T] }

func (l *line[T]) add(s *Subscription[T]) {
	if l.first == nil {
		l.first, l.last = s, s
		return
	}
	l.last.behind, l.last = s, s
}

func (l *line[T]) take() *Subscription[T] {
	s := l.first
	if s == nil {
		return nil
	}
	l.first, s.behind = s.behind, nil
	if l.first == nil {
		l.last = nil // a handler that has left must not be kept by the line
	}
	return s
}

// call lets handlers run, in this order.
func (f *Fanout[T]) call(woken line[T]) {
	if woken.first == nil {
		return
	}
	if run := f.opts.Go; run != nil {
		for s := woken.take(); s != nil; s = woken.take() {
			run(s.Name(), s.runFn)
		}
		return
	}
	if f.turns.join(woken) {
		go f.runFn()
	}
}

// join puts handlers at the end of the line, and reports whether a runner is to be
// started for them.
func (t *turns[T]) join(woken line[T]) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.line.first == nil {
		t.line = woken
	} else {
		t.line.last.behind, t.line.last = woken.first, woken.last
	}
	if t.looking > 0 {
		return false
	}
	t.looking = 1
	return true
}

// next gives a runner the first of the line, or nil if it may end. back says that it
// comes from a callback. Where others wait and nobody else is on the way to them, relief is
// true: the runner must start one before it calls its handler.
func (t *turns[T]) next(back bool) (s *Subscription[T], relief bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if back {
		t.looking++
	}
	s = t.line.take()
	if s != nil && t.line.first != nil && t.looking == 1 {
		return s, true // the one that is started looks in place of this one
	}
	t.looking--
	return s, false
}

// runner calls handlers while any wait. A callback that ends its goroutine ends a runner
// that counts for nothing: its handler comes back to the line by itself.
func (f *Fanout[T]) runner() {
	for back := false; ; back = true {
		s, relief := f.turns.next(back)
		if s == nil {
			return
		}
		if relief {
			go f.runFn()
		}
		s.run()
	}
}
