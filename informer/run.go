package informer

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mirador-k8s/mirador/fanout"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/reflector"
	"github.com/mirador-k8s/mirador/store"
)

// ErrRunning is returned by Run and Release while the informer runs.
var ErrRunning = errors.New("the informer is running")

// Run mirrors until ctx ends or Stop is called. It returns when everything it
// started has ended; if callbacks are still running after the stop timeout, its
// error names them.
//
// The store stays readable afterwards, so that workers that drain a queue still find their objects. Release empties
// it, and so does the next Run, which starts with an empty store and without handlers. HasSynced is false until the
// store has the first state of that Run.
//
// Three kinds of goroutines work together, for an event and for a list alike:
//
//   - The reader, the goroutine that called Run, reads the source and pushes what it read into the queue
//     (reflector.Run). It waits for the source, and for room in the queue while a list is read.
//   - The writer takes batches from the queue, writes them to the store, commits, and publishes the events (consume,
//     apply). It waits only for the queue, never for handlers or for readers of the store. Transforms, index functions
//     and reports of problems run on it. It starts when there is something to write, and ends when there has been
//     nothing for a while (writerRest).
//   - Runners, goroutines of the fanout, call the handlers, each at its own pace (fanout/runners.go). There are none
//     while there is no event to deliver. A handler that blocks occupies one runner; other runners serve the other
//     handlers.
//
// So an informer at rest has one goroutine, and an event wakes two others: the writer, and a runner. A source that
// panics or ends its goroutine does so on that of Run, which stops the informer first. A callback that ends the
// writer's goroutine with runtime.Goexit stops the informer, too, and Run returns an error.
func (i *Informer[T]) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	cancel := func() { stop(nil) }
	defer cancel()
	fan, q, refl, err := i.begin(cancel)
	if err != nil {
		return err
	}
	return i.mirror(ctx, stop, fan, q, refl)
}

// mirror reads the source until ctx ends, and then ends the Run: also if the source panics or ends the goroutine.
func (i *Informer[T]) mirror(ctx context.Context, stop context.CancelCauseFunc, fan *fanout.Fanout[*store.Entry[T]],
	q *batchQueue[T], refl *reflector.Reflector[T]) (err error) {
	var writer sync.WaitGroup
	q.startConsumer = func() { writer.Go(func() { i.runWriter(ctx, stop, q) }) }
	defer func() {
		q.close()
		writer.Wait() // it writes what was read, unless ctx has ended
		err = i.finish(fan, q)
		if cause := context.Cause(ctx); errors.Is(cause, errWriterExited) {
			err = errors.Join(fmt.Errorf("running %s: %w", i.opts.Name, cause), err)
		}
	}()
	i.load(refl)
	i.read(ctx, refl, q)
	<-ctx.Done() // if reading has ended earlier, the informer still runs until its context ends
	return nil
}

// read mirrors the source into the queue until ctx ends.
func (i *Informer[T]) read(ctx context.Context, refl *reflector.Reflector[T], q *batchQueue[T]) {
	if err := refl.Run(ctx); err != nil && !errors.Is(err, errQueueClosed) && ctx.Err() == nil {
		i.problem("reflect", "", err)
	}
	q.close()
}

// finish ends a Run after its reflector has ended.
func (i *Informer[T]) finish(fan *fanout.Fanout[*store.Entry[T]], q *batchQueue[T]) error {
	for rest := q.take(nil); len(rest) > 0; rest = q.take(rest[:0]) {
		clear(rest) // not delivered any more
	}
	return i.end(fan)
}

// begin takes the informer from created or stopped to running.
func (i *Informer[T]) begin(cancel context.CancelFunc) (*fanout.Fanout[*store.Entry[T]], *batchQueue[T],
	*reflector.Reflector[T], error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch i.state {
	case starting, running, stopping:
		return nil, nil, nil, fmt.Errorf("running %s: %w", i.opts.Name, ErrRunning)
	case stopped:
		if i.opts.Verbatim { // as in client-go, there is one Run
			return nil, nil, nil, fmt.Errorf("running %s again: %w and can run only once; make a new one", i.opts.Name,
				ErrStopped)
		}
		if err := i.prepare(); err != nil {
			return nil, nil, nil, err
		}
		// The state of the last Run is dropped before a handler can subscribe: otherwise the handler would receive objects
		// whose deletion is never delivered.
		i.state, i.cancel = starting, cancel
		i.mu.Unlock()
		i.beginWrite()
		i.reset()
		i.endWrite()
		i.mu.Lock()
	}
	i.state, i.cancel = running, cancel
	return i.fan, i.queue, i.refl, nil
}

// end stops the handlers and marks the informer stopped. The store stays readable; an incomplete list is discarded.
func (i *Informer[T]) end(fan *fanout.Fanout[*store.Entry[T]]) error {
	i.mu.Lock()
	i.state = stopping
	i.mu.Unlock()
	wait, cancel := context.WithTimeout(context.Background(), i.opts.StopTimeout)
	defer cancel()
	err := fan.Stop(wait)
	i.beginWrite()
	i.abandon()
	i.endWrite()
	if !i.opts.Verbatim {
		i.verify()
	}
	i.mu.Lock()
	i.state = stopped
	close(i.ended)
	if !i.opts.Verbatim {
		// Calls that wait from now on wait for the next Run.
		i.synced, i.ended = make(chan struct{}), make(chan struct{})
	}
	i.mu.Unlock()
	if err != nil {
		return fmt.Errorf("stopping %s: %w", i.opts.Name, err)
	}
	return nil
}

// Release empties the store of a stopped informer and frees its memory. Snapshots that were taken before stay valid.
// While the informer runs, Release does nothing and returns ErrRunning. An informer that is not referenced any more
// needs no Release.
func (i *Informer[T]) Release() error {
	i.beginWrite()
	defer i.endWrite()
	i.mu.Lock()
	state := i.state
	i.mu.Unlock()
	switch state {
	case created:
		return nil
	case starting, running, stopping:
		return fmt.Errorf("releasing what %s holds: %w; stop it first", i.opts.Name, ErrRunning)
	}
	// A Run that begins now waits for the write lock before it stores anything.
	i.reset()
	return nil
}

// reset empties the store. The write lock is held.
func (i *Informer[T]) reset() {
	i.abandon()
	i.verify()
	i.batch = batch[T]{epoch: i.batch.epoch, seq: i.batch.seq}
	i.publishEpoch()
	i.writer.Reset()
	i.batch.seq++
}

// verify looks for stored objects that were written to, if DetectWrites is set.
func (i *Informer[T]) verify() {
	if i.opts.DetectWrites == nil {
		return
	}
	for e := range i.reader.Snapshot().Entries() {
		e.Verify()
	}
}

// Stop ends Run and waits until Run and all callbacks have returned. If ctx ends first, the error names the handlers
// that are still running. Stop does nothing if the informer does not run.
func (i *Informer[T]) Stop(ctx context.Context) error {
	i.mu.Lock()
	if i.state == created || i.state == stopped {
		i.mu.Unlock()
		return nil
	}
	cancel, ended, fan := i.cancel, i.ended, i.fan
	i.mu.Unlock()
	cancel()
	err := fan.Stop(ctx)
	select {
	case <-ended:
		if err != nil {
			return fmt.Errorf("stopping %s: %w", i.opts.Name, err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stopping %s: %w", i.opts.Name, errors.Join(ctx.Err(), err))
	}
}

// errWriterExited is the error of a Run that a callback has ended.
var errWriterExited = errors.New("a transform, an index function, a codec or OnProblem has called runtime.Goexit on " +
	"the writer's goroutine, so the informer has stopped; let it return an error instead")

// runWriter is the goroutine of the writer. If a callback ends the goroutine, it stops the informer: the changes that
// were taken from the queue are lost, so the store could not follow the source any more.
func (i *Informer[T]) runWriter(ctx context.Context, stop context.CancelCauseFunc, q *batchQueue[T]) {
	returned := false
	defer func() {
		if !returned {
			stop(errWriterExited)
			q.forgetConsumer()
		}
	}()
	i.consume(ctx, q)
	returned = true
}

// keptBuffer is the largest capacity of a buffer that is kept while there are few changes.
const keptBuffer = 4

// consume is the writer: it stores and publishes the deltas of the queue until there are none for a while or the queue
// is closed. When ctx has ended, the rest is dropped.
func (i *Informer[T]) consume(ctx context.Context, q *batchQueue[T]) {
	var buf []object.Delta[T]
	for q.wait(ctx) {
		buf = q.take(buf[:0])
		i.apply(buf)
		last := buf[len(buf)-1].Type
		clear(buf)
		if last == object.ReplaceEnd || last == object.ReplaceAbort || cap(buf) > keptBuffer && len(buf) <= keptBuffer {
			buf = nil // after a list or a burst, most informers have few changes for a long time
		}
	}
}
