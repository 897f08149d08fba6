package informertest

import (
	"context"
	"iter"
)

// task is something that runs until it has to wait, and goes on when the simulator
// says so. The hand-over is a coroutine's: nothing else runs meanwhile.
type task struct {
	name  string
	next  func() (struct{}, bool)
	yield func(struct{}) bool
	ready func() bool // nil where it waits for nothing but its turn
	done  bool
}

func newTask(name string, run func()) *task {
	t := &task{name: name}
	// The coroutine is never stopped from outside: each is run to its end.
	t.next, _ = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		run()
	})
	return t
}

func (t *task) runnable() bool { return !t.done && (t.ready == nil || t.ready()) }

// resume lets a task run until it waits or ends.
func (s *simulation) resume(t *task) {
	before := s.current
	s.current, t.ready = t, nil
	_, more := t.next()
	s.current = before
	t.done = !more
}

// wait returns when ready does. What is stepped hands control back to the simulator;
// what runs free blocks until the simulator has done something.
func (s *simulation) wait(ready func() bool) {
	if s.free {
		s.mu.Lock()
		defer s.mu.Unlock()
		for !ready() {
			s.stir.Wait()
		}
		return
	}
	for !ready() {
		if s.current == nil {
			panic("informertest: something waits that is no part of the simulation")
		}
		s.current.ready = ready
		s.current.yield(struct{}{})
	}
}

// waitFor is wait for something that belongs to a request.
func (s *simulation) waitFor(ctx context.Context, ready func() bool) {
	if s.free {
		stop := context.AfterFunc(ctx, s.stirUp)
		defer stop()
	}
	s.wait(func() bool { return ready() || ctx.Err() != nil })
}

// pause lets others have their turn.
func (s *simulation) pause() {
	if !s.free && s.current != nil {
		s.current.ready = nil
		s.current.yield(struct{}{})
	}
}

// stirUp lets everything that runs free look again whether it may go on.
func (s *simulation) stirUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stir.Broadcast()
}
