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
//
// The publisher's own work, where Attend was given some, is done by a runner too: it is
// what comes when nobody is in the line. Who publishes in the course of it calls the
// handlers himself, at once; the work waits for that, unless a callback takes
// its time: then the runner that is on its way goes on with it.
type turns[T any] struct {
	mu      sync.Mutex
	line    line[T]
	looking int // those that look at the line before they call anybody: runners, and who was woken by StandBy

	free   bool // there is work, and nobody does it
	coming bool // who does it is one of those that look: he has only to come back
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

// call lets handlers run, in this order; here is as in join.
func (f *Fanout[T]) call(woken line[T], here bool) {
	if woken.first == nil {
		return
	}
	if run := f.opts.Go; run != nil {
		for s := woken.take(); s != nil; s = woken.take() {
			run(s.Name(), s.run)
		}
		return
	}
	if f.turns.join(woken, here) {
		go f.runFn()
	}
}

// join puts handlers at the end of the line, and reports whether a runner is to be
// started for them. here says that the caller is doing the work, and comes to the line
// when he returns from it.
func (t *turns[T]) join(woken line[T], here bool) bool {
	t.mu.Lock()
	if t.line.first == nil {
		t.line = woken
	} else {
		t.line.last.behind, t.line.last = woken.first, woken.last
	}
	start := false
	if t.looking == 0 {
		t.looking, t.coming, start = 1, here, !here
	}
	t.mu.Unlock()
	return start
}

// back is what a runner comes from when it looks at the line.
type back uint8

const (
	fromStart back = iota
	fromCallback
	fromWork
)

// next gives a runner the first of the line, or the work, or neither if it may end. The handler that it has
// called, if that has more to do, goes to the end of the line. Where
// something is left to do and nobody else is on the way to it, relief is true: the
// runner must see to it that somebody is, before it calls its handler.
func (t *turns[T]) next(from back, again *Subscription[T]) (s *Subscription[T], work, relief bool) {
	t.mu.Lock()
	if again != nil {
		t.line.add(again)
	}
	switch {
	case from == fromCallback:
		t.looking++
	case from == fromWork && !t.coming:
		t.mu.Unlock()
		return nil, true, false // whoever is in the line is not his business
	case from == fromWork:
		t.free, t.coming = true, false
	}
	if s = t.line.take(); s == nil {
		work, t.free = t.free, false
	} else {
		relief = t.looking == 1 && (t.line.first != nil || t.free)
	}
	if !relief { // where there is one, it looks in place of this one
		t.looking--
	}
	t.mu.Unlock()
	return s, work, relief
}

// runner calls handlers while any wait, and does the work while nobody does. A callback that
// ends its goroutine ends a runner that counts for nothing: its handler comes back
// to the line by itself.
func (f *Fanout[T]) runner() {
	var again *Subscription[T]
	var worker Worker
	for from := fromStart; ; {
		s, work, relief := f.turns.next(from, again)
		again = nil
		if relief && (from != fromWork || !worker.StandBy()) {
			go f.runFn()
		}
		switch {
		case s != nil:
			if s.turn() {
				again = s
			}
			from = fromCallback
		case work:
			worker = f.worker
			if !f.worked() {
				return
			}
			from = fromWork
		default:
			return
		}
	}
}

// Worker is what a Fanout attends to.
type Worker interface {
	// Work is called until it returns false, one call at a time.
	Work() (more bool)
	// StandBy wakes somebody who waits for something else and who calls Relieve then, soon and once. It
	// reports false, having done nothing, where there is nobody: a goroutine is started in his place. It is
	// called after Work, perhaps beside the next one or after Over, and must not wait.
	StandBy() bool
	// Over is called when Work has been called for the last time.
	Over()
}

// Attend lets a worker work. It does not wait. Between two calls of Work the goroutine that does so calls handlers:
// those that PublishHere found idle are called as soon as the call in which that was done has returned,
// with no other goroutine to wait for. If one of them does not return at once, the next
// call of Work is on another goroutine. There can be one at a time.
func (f *Fanout[T]) Attend(w Worker) {
	f.worker = w
	if f.turns.offer() {
		go f.runFn()
	}
}

// offer says that there is work, and reports whether a runner is to be started for it.
func (t *turns[T]) offer() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free = true
	if t.looking > 0 {
		return false
	}
	t.looking = 1
	return true
}

// worked does the work once, and reports whether there is more. Work that ends its goroutine is
// over, as it is when it panics, with the program.
func (f *Fanout[T]) worked() (more bool) {
	defer func() {
		if !more {
			f.workOver()
		}
	}()
	return f.worker.Work()
}

// Relieve is for who was woken by StandBy. It starts a runner if there is still something to do, as there is when callbacks take
// their time. To wake somebody takes a quarter of what it takes to start a goroutine (0.2 us, not 0.9): the processor
// has the code for it at hand, since by the same code the worker was woken.
func (f *Fanout[T]) Relieve() {
	if f.turns.unattended() {
		go f.runFn()
	}
}

// unattended reports whether there is something to do for a runner that is on its way, or lets it turn back.
func (t *turns[T]) unattended() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.line.first != nil || t.free {
		return true
	}
	t.looking--
	return false
}

// workOver tells that there is no more work, and sends somebody to the line where he was the one to come.
func (f *Fanout[T]) workOver() {
	f.turns.mu.Lock()
	coming := f.turns.coming
	f.turns.coming = false
	f.turns.mu.Unlock()
	if coming { // he was on his way to the line, and will not come
		go f.runFn()
	}
	w := f.worker
	f.worker = nil
	w.Over()
}
