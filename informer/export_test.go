package informer

import (
	"context"
	"time"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/reflector"
)

// Queue is the queue between the reflector and the store.
type Queue[T any] = batchQueue[T]

// Depth returns the number of waiting deltas and their size.
func (q *batchQueue[T]) Depth() (deltas, bytes int) { return q.depth() }

func (q *batchQueue[T]) depth() (deltas, bytes int) {
	deltas, bytes, _ = q.counts()
	return deltas, bytes
}

func (q *batchQueue[T]) coalesced() uint64 {
	_, _, n := q.counts()
	return n
}

// RunInSteps lets Step do, one at a time, what Run does.
func (o *Options[T]) RunInSteps(sink func(q *batchQueue[T]) reflector.Sink[T],
	handlers func(handler string, run func())) {
	o.steps = &steps[T]{sink: sink, handlers: handlers}
}

// Stepped is a Run whose caller does the work of its goroutines, step by step.
type Stepped[T any] struct {
	i      *Informer[T]
	ctx    context.Context
	cancel context.CancelFunc
	refl   *reflector.Reflector[T]
	queue  *batchQueue[T]
	finish func() error
	buf    []object.Delta[T]
}

// Step begins a Run.
func (i *Informer[T]) Step(ctx context.Context) (*Stepped[T], error) {
	ctx, cancel := context.WithCancel(ctx)
	fan, q, refl, err := i.begin(cancel)
	if err != nil {
		cancel()
		return nil, err
	}
	i.load(refl)
	return &Stepped[T]{i: i, ctx: ctx, cancel: cancel, refl: refl, queue: q,
		finish: func() error { return i.finish(fan, q) }}, nil
}

// Writable reports whether AddIndexes and Amend would not have to wait for a write.
func (i *Informer[T]) Writable() bool {
	if !i.write.TryLock() {
		return false
	}
	i.write.Unlock()
	return true
}

// Reflect executes the reflector's next step and returns how long the reflector then waits. After a stop it closes the
// reflector, and done is true.
func (s *Stepped[T]) Reflect() (wait time.Duration, done bool) {
	wait, err := s.refl.Step(s.ctx)
	if err == nil && s.ctx.Err() == nil {
		return wait, false
	}
	s.refl.Close()
	return 0, true
}

// Waiting returns the number of deltas that wait for Consume.
func (s *Stepped[T]) Waiting() int {
	n, _ := s.queue.depth()
	return n
}

// Consume takes one batch off the queue.
func (s *Stepped[T]) Consume() {
	s.buf = s.queue.take(s.buf[:0])
	s.i.apply(s.buf)
	clear(s.buf)
}

// End ends the Run after its reflector has ended.
func (s *Stepped[T]) End() error {
	s.cancel()
	s.queue.close()
	return s.finish()
}
