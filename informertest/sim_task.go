package informertest

import (
	"context"
	"iter"
)

// task is a coroutine that runs until it has to wait, and continues when the simulator resumes it. Nothing else runs
// meanwhile.
type task struct {
	name  string
	next  func() (struct{}, bool)
	yield func(struct{}) bool
	ready func() bool // nil if it only waits for its turn
	done  bool
}

func newTask(name string, run func()) *task {
	t := &task{name: name}
	// The coroutine is never stopped from outside: each runs to its end.
	t.next, _ = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		run()
	})
	return t
}

func (t *task) runnable() bool { return !t.done && (t.ready == nil || t.ready()) }

// resume runs a task until it waits or ends.
func (s *simulation) resume(t *task) {
	before := s.current
	s.current, t.ready = t, nil
	_, more := t.next()
	s.current = before
	t.done = !more
}

// wait returns when ready returns true. A task passes control back to the simulator; a free-running goroutine blocks
// until the simulator has done something.
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
			panic("informertest: a goroutine waits that is not part of the simulation")
		}
		s.current.ready = ready
		s.current.yield(struct{}{})
	}
}

// waitFor is wait for a goroutine that also waits for a request's context.
func (s *simulation) waitFor(ctx context.Context, ready func() bool) {
	if s.free {
		stop := context.AfterFunc(ctx, s.wakeFree)
		defer stop()
	}
	s.wait(func() bool { return ready() || ctx.Err() != nil })
}

// pause ends the task's turn.
func (s *simulation) pause() {
	if !s.free && s.current != nil {
		s.current.ready = nil
		s.current.yield(struct{}{})
	}
}

// wakeFree makes every waiting free-running goroutine check its condition again.
func (s *simulation) wakeFree() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stir.Broadcast()
}
