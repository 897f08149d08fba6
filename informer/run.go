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

// ErrRunning is returned by a Run while another is under way.
var ErrRunning = errors.New("informer: it is running already")

// Run mirrors until ctx ends or Stop is called. It returns when everything it
// started has ended; if callbacks are still running after the stop timeout, its
// error names them.
//
// What the store has then stays readable, so that workers which drain a queue still
// find their objects. Release drops it, and so does the next Run: that one starts
// anew, with an empty store and without handlers, and until its first state is in
// the store HasSynced is false.
//
// Who does what, for an event and for a list alike:
//
//   - The reader, a goroutine of Run, reads the source and pushes what it read into the queue (reflector.Run). It
//     waits for the source, and for room in the queue while a list is read.
//   - The writer, the goroutine that called Run, takes batches from the queue, writes them to the store, commits,
//     and publishes the events (consume, apply). It waits for the queue and for nothing else: not for handlers, nor
//     for readers of the store. Transforms, index functions and reports of problems run on it.
//   - Runners, goroutines of the fanout, call the handlers, each at its own pace (fanout/runners.go). There are none
//     while no event is to be delivered. A handler that blocks occupies one runner; the others go on with other
//     runners.
//
// So an informer at rest has two goroutines, and an event wakes two: the writer, and a runner.
func (i *Informer[T]) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	fan, q, refl, err := i.begin(cancel)
	if err != nil {
		return err
	}
	i.load()

	var reader sync.WaitGroup
	reader.Go(func() { i.read(ctx, refl, q) })
	i.consume(ctx, q)
	<-ctx.Done() // if reading ended before that, the store stays readable until then
	reader.Wait()
	return i.finish(fan, q)
}

// read mirrors the source into the queue until ctx ends.
func (i *Informer[T]) read(ctx context.Context, refl *reflector.Reflector[T], q *batchQueue[T]) {
	defer q.close() // also if the source ends this goroutine
	if err := refl.Run(ctx); err != nil && !errors.Is(err, errQueueClosed) && ctx.Err() == nil {
		i.problem("reflect", "", err)
	}
}

// finish is the end of a Run whose reflector has ended.
func (i *Informer[T]) finish(fan *fanout.Fanout[*store.Entry[T]], q *batchQueue[T]) error {
	for rest := q.take(nil); len(rest) > 0; rest = q.take(rest[:0]) {
		clear(rest) // nobody is told of it any more
	}
	return i.end(fan)
}

// begin takes the informer from created or stopped to running.
func (i *Informer[T]) begin(cancel context.CancelFunc) (*fanout.Fanout[*store.Entry[T]], *batchQueue[T], *reflector.Reflector[T], error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch i.state {
	case starting, running, stopping:
		return nil, nil, nil, fmt.Errorf("running %s: %w", i.opts.Name, ErrRunning)
	case stopped:
		if i.opts.Verbatim { // as in client-go, there is one Run
			return nil, nil, nil, fmt.Errorf("running %s again: %w and can run only once; make a new one", i.opts.Name, ErrStopped)
		}
		if err := i.prepare(); err != nil {
			return nil, nil, nil, err
		}
		// The last Run's state is dropped before a handler can join: it would be given
		// objects whose end is never announced.
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

// end stops the handlers and marks the informer stopped. What is stored stays readable, a
// list that was read in part does not.
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
		// Whoever waits from now on waits for the next Run.
		i.synced, i.ended = make(chan struct{}), make(chan struct{})
	}
	i.mu.Unlock()
	if err != nil {
		return fmt.Errorf("stopping %s: %w", i.opts.Name, err)
	}
	return nil
}

// Release drops what a stopped informer has kept readable: the store is empty afterwards,
// also for those that read it meanwhile. Snapshots that were taken before stay as they are.
// While the informer runs, Release does nothing and returns ErrRunning. An informer
// that nothing refers to any more needs no Release.
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

// verify looks for objects that were written to, where DetectWrites asks for it.
func (i *Informer[T]) verify() {
	if i.opts.DetectWrites == nil {
		return
	}
	for e := range i.reader.Snapshot().Entries() {
		e.Verify()
	}
}

// Stop ends Run and waits for it and for running callbacks until ctx ends; its
// error then names the handlers that are still running. An informer that does not
// run needs no stop.
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

// load puts the state to start from into the store, as a list would.
func (i *Informer[T]) load() {
	if i.start == nil {
		return
	}
	deltas := make([]object.Delta[T], 0, len(i.start.Items)+2)
	deltas = append(deltas, object.Delta[T]{Type: object.ReplaceBegin})
	for _, it := range i.start.Items {
		deltas = append(deltas, object.Delta[T]{Type: object.Replaced, Item: it})
	}
	deltas = append(deltas, object.Delta[T]{Type: object.ReplaceEnd, Item: object.Item[T]{Version: i.start.Version}})
	transform := i.opts.Transform
	i.opts.Transform = nil // the state was transformed before it was stored the first time
	i.apply(deltas)
	i.opts.Transform = transform
	if i.start.mixed() {
		i.problem("start", "", fmt.Errorf("the state to start from has objects later than its version %s: it is read anew", i.start.Version))
	}
	i.mu.Lock()
	i.start = nil // the store has it now
	i.mu.Unlock()
}

// keptBuffer is how many deltas a buffer may have room for to be kept in quiet times.
const keptBuffer = 4

// consume stores and publishes what is in the queue until that is closed. When ctx has ended, the rest is dropped.
func (i *Informer[T]) consume(ctx context.Context, q *batchQueue[T]) {
	var buf []object.Delta[T]
	for ctx.Err() == nil {
		if !q.wait() {
			return
		}
		buf = q.take(buf[:0])
		i.apply(buf)
		last := buf[len(buf)-1].Type
		clear(buf)
		if last == object.ReplaceEnd || last == object.ReplaceAbort || cap(buf) > keptBuffer && len(buf) <= keptBuffer {
			buf = nil // a list or a burst is over, and most informers are quiet for most of the time
		}
	}
}
