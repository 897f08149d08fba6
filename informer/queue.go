package informer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/mirador-k8s/mirador/object"
)

const (
	defaultMaxBytes = 16 << 20
	defaultMaxBatch = 1000
	// deltaBytes is what a delta counts beside the size of its object: about what
	// it takes in the queue with its key, version and UID.
	deltaBytes = 128
)

// queueLimits bound a batchQueue. The zero value means the defaults.
type queueLimits struct {
	// maxBytes is where the queue stops growing freely: the sum of Item.Size and
	// a constant for each delta. 0 means 16 MiB.
	maxBytes int
	// listBytes is where a list begins to wait for the consumer; 0 means maxBytes. Less is
	// for a consumer that keeps far less of an object than waits here of it.
	listBytes int
	// maxBatch is how many deltas one Take gives at most. 0 means 1000.
	maxBatch int
	// keepAll switches the bound off: nothing is coalesced and no list waits, the
	// queue only counts.
	keepAll bool
}

// batchQueue holds what the reader has read until the writer has stored it: deltas in the order of their arrival,
// with one producer and one consumer.
//
//   - Below the bound in bytes every delta comes out as it went in.
//   - Beyond the bound a list waits for the consumer. A watch does not: its deltas are coalesced to the latest one
//     of each key. A delta never moves across the beginning, the end or the abort of a list, and the deltas of a key
//     keep their order, so the consumer ends in the same state as if nothing had been coalesced.
//   - A coalesced delta takes the place of the earlier one, ahead of what other keys did in between. Its Through
//     says how far history is complete all the same, and a bookmark at the end vouches for the rest: a version is
//     never claimed before everything up to it was taken.
//   - A stalled consumer costs at most the bound, one delta beyond it, and one delta for each key that changed since.
//   - Filling and emptying the queue allocates nothing once it has its size, and after a burst or a list the memory
//     is given back.
type batchQueue[T any] struct {
	opts queueLimits

	mu     sync.Mutex
	ring   chunks[T]
	deltas int // without the holes that coalescing left
	bytes  int
	closed bool

	merged    uint64
	latest    latest[T]
	afterMark uint64 // the first position behind the last mark of a list
	inList    bool   // that mark was a ReplaceBegin

	// A waiting side says so under the lock and is then sent one token.
	consumerWaits, producerWaits bool
	filled, drained              chan struct{}
}

// errQueueClosed is what Push returns after close.
var errQueueClosed = errors.New("the queue is closed")

// newBatchQueue makes an empty queue.
func newBatchQueue[T any](opts queueLimits) *batchQueue[T] {
	if opts.maxBytes <= 0 {
		opts.maxBytes = defaultMaxBytes
	}
	if opts.listBytes <= 0 || opts.listBytes > opts.maxBytes {
		opts.listBytes = opts.maxBytes
	}
	if opts.maxBatch <= 0 {
		opts.maxBatch = defaultMaxBatch
	}
	return &batchQueue[T]{opts: opts, filled: make(chan struct{}, 1)}
}

// Push queues deltas, in order. It copies them; the slice stays the caller's.
//
// Only a list can make it wait: while the queue is full, ReplaceBegin and
// Replaced wait until the consumer has made room. If ctx ends meanwhile, Push
// returns its error, and the deltas before the one that waited are queued. The
// end and the abort of a list never wait, so that a list can be given up even
// then. Watch deltas and bookmarks never wait either. After Close the error is
// errQueueClosed.
func (q *batchQueue[T]) Push(ctx context.Context, deltas []object.Delta[T]) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.wakeConsumer()
	for i := range deltas {
		d := &deltas[i]
		switch {
		case q.closed:
			return errQueueClosed
		case d.Type == 0:
			continue // the zero Delta means nothing
		case d.Type > object.ReplaceAbort, d.Type == object.Resynced, d.Type == object.Undecodable:
			return fmt.Errorf("push delta %d of %d: %s is not a type of delta", i, len(deltas), d.Type)
		case d.Type == object.ReplaceBegin, d.Type == object.Replaced:
			if err := q.awaitRoom(ctx); err != nil {
				return err
			}
		}
		q.put(d)
	}
	if q.closed {
		return errQueueClosed
	}
	return nil
}

// awaitRoom is called, and returns, with the lock held.
func (q *batchQueue[T]) awaitRoom(ctx context.Context) error {
	for q.full() && !q.closed {
		q.wakeConsumer()
		q.producerWaits = true
		if q.drained == nil { // few producers ever wait
			q.drained = make(chan struct{}, 1)
		}
		drained := q.drained
		q.mu.Unlock()
		var err error
		select {
		case <-drained:
		case <-ctx.Done():
			err = fmt.Errorf("push a list into a full queue: %w", ctx.Err())
		}
		q.mu.Lock()
		q.producerWaits = false
		if err != nil {
			return err
		}
	}
	if q.closed {
		return errQueueClosed
	}
	return nil
}

func (q *batchQueue[T]) full() bool { return q.bytes >= q.opts.listBytes && !q.opts.keepAll }

// wait blocks until there is something to take, and returns true. It returns false once the queue is closed and empty.
func (q *batchQueue[T]) wait() bool {
	for {
		q.mu.Lock()
		some, closed := q.deltas > 0, q.closed
		q.consumerWaits = !some && !closed
		q.mu.Unlock()
		switch {
		case some:
			return true
		case closed:
			return false
		}
		<-q.filled
	}
}

// take moves up to maxBatch deltas out of the queue and appends them to buf, in
// the order of their arrival. It never waits; where there is nothing, buf comes
// back as it was.
func (q *batchQueue[T]) take(buf []object.Delta[T]) []object.Delta[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(q.deltas, q.opts.maxBatch)
	buf = slices.Grow(buf, n)
	for n > 0 {
		pos := q.ring.head
		d := q.ring.front()
		if d.Type != 0 {
			q.latest.forget(d, pos)
			q.deltas--
			q.bytes -= cost(d)
			buf = append(buf, *d)
			n--
		}
		q.ring.dropFront()
	}
	if q.deltas == 0 && len(buf) > 0 && endsList(buf[len(buf)-1].Type) {
		q.ring.release() // after a list most queues are quiet for long
	}
	// The index is let go late, so that a queue which stays near its bound does
	// not build it again and again.
	if q.bytes < q.opts.maxBytes/2 {
		q.latest.stop()
	}
	if q.producerWaits && !q.full() {
		q.producerWaits = false
		token(q.drained)
	}
	return buf
}

// depth says how many deltas wait, and how many bytes they count for.
func (q *batchQueue[T]) depth() (deltas, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.deltas, q.bytes
}

// coalesced counts the deltas that gave way to a later one.
func (q *batchQueue[T]) coalesced() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.merged
}

// close ends the queue for the producer at once, and for the consumer when it
// has taken what is there. Closing twice is fine.
func (q *batchQueue[T]) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	if q.consumerWaits {
		q.consumerWaits = false
		token(q.filled)
	}
	if q.producerWaits {
		q.producerWaits = false
		token(q.drained)
	}
}

func (q *batchQueue[T]) wakeConsumer() {
	if q.consumerWaits && q.deltas > 0 {
		q.consumerWaits = false
		token(q.filled)
	}
}

// endsList reports whether a delta is the last of a list.
func endsList(t object.ChangeType) bool { return t == object.ReplaceEnd || t == object.ReplaceAbort }

func token(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // one is on its way; whoever gets it looks again
	}
}

func cost[T any](d *object.Delta[T]) int { return max(d.Item.Size, 0) + deltaBytes }
