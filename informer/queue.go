package informer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mirador-k8s/mirador/object"
)

const (
	defaultMaxBytes = 16 << 20
	defaultMaxBatch = 1000
	// deltaBytes is added to the size of each delta's object: about the memory of the delta, its key, version and UID.
	deltaBytes = 128
	// writerRest is how often a consumer that was started is checked: it ends if it has taken nothing since the last
	// check. A change that comes later costs the start of a goroutine, so changes in quick succession share one.
	writerRest = time.Second
)

// queueLimits bound a batchQueue. The zero value means the defaults.
type queueLimits struct {
	// maxBytes is the size beyond which deltas are coalesced: the sum of Item.Size and a constant for each delta. 0 means
	// 16 MiB.
	maxBytes int
	// listBytes is the size beyond which a list waits for the consumer; 0 means maxBytes. A smaller value is for a
	// consumer that stores objects in far less memory than they take here.
	listBytes int
	// maxBatch is the largest number of deltas that take returns at once. 0 means 1000.
	maxBatch int
	// keepAll switches the bound off: nothing is coalesced, and no list waits.
	keepAll bool
}

// batchQueue holds the deltas that the reader has read until the writer stores them, in the order of their arrival. It
// has one producer and one consumer.
//
//   - Below the bound in bytes, deltas leave the queue as they entered it.
//   - Beyond the bound a list waits for the consumer. A watch does not: its deltas are coalesced to the latest one
//     of each key. A delta never moves across the beginning, the end or the abort of a list, and the deltas of a key
//     keep their order, so the consumer ends in the same state as if nothing had been coalesced.
//   - A coalesced delta takes the place of the earlier one, before the changes of other keys in between. Its Through
//     method still returns the version up to which history is complete, and a bookmark at the end has the newest
//     version: a version is never reached before all changes up to it were taken.
//   - A stalled consumer costs at most the bound, one delta beyond it, and one delta for each key that changed since.
//   - In steady traffic the queue allocates nothing, and after a burst or a list it frees its memory. A queue that has
//     been empty for a while holds none.
type batchQueue[T any] struct {
	opts queueLimits

	mu     sync.Mutex
	ring   chunks[T]
	deltas int // without the holes that coalescing left
	bytes  int
	closed bool

	merged    uint64
	latest    latest[T]
	afterMark uint64 // the first position after the last ReplaceBegin, ReplaceEnd or ReplaceAbort
	inList    bool   // that was a ReplaceBegin

	// startConsumer, if it is set, starts a goroutine that calls wait until it returns false. It is called with the lock
	// held when there is something to take and no consumer.
	startConsumer func()
	consuming     bool        // the consumer that startConsumer started has not ended
	brief         bool        // it ends as soon as there is nothing to take
	checks        *time.Timer // calls check while there is such a consumer
	taken         bool        // something was taken since the last check
	dismissed     bool        // the consumer must end unless there is something to take

	// A side that waits sets its flag under the lock and then receives one token.
	consumerWaits, producerWaits bool
	filled, drained              chan struct{}
}

// errQueueClosed is returned by Push after close.
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
	return &batchQueue[T]{opts: opts}
}

// Push queues copies of deltas, in order.
//
// Only a list can make it wait: while the queue is full, ReplaceBegin and Replaced wait until the consumer has made
// room. If ctx ends meanwhile, Push returns its error, and the deltas before the waiting one are queued. ReplaceEnd
// and ReplaceAbort never wait, so that a list can be abandoned while the queue is full. Changes from a watch and
// bookmarks never wait either. After close the error is errQueueClosed.
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
			continue // the zero Delta has no effect
		case d.Type > object.ReplaceAbort, d.Type == object.Resynced, d.Type == object.Undecodable:
			return fmt.Errorf("push delta %d of %d: %s cannot be the type of a delta", i, len(deltas), d.Type)
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

// put queues one delta: at the end or, over the bound, in the place of an earlier one.
func (q *batchQueue[T]) put(d *object.Delta[T]) {
	if q.bytes >= q.opts.maxBytes && !q.opts.keepAll {
		if !q.latest.on() {
			q.startLatest()
		}
		if q.merge(d) {
			q.merged++
			return
		}
	}
	at := place[T]{pos: q.ring.tail}
	at.at = q.ring.push(d)
	q.deltas++
	q.bytes += cost(d)
	if q.latest.on() {
		q.latest.note(d, at)
	}
	switch d.Type {
	case object.ReplaceBegin, object.ReplaceEnd, object.ReplaceAbort:
		q.afterMark = q.ring.tail
		q.inList = d.Type == object.ReplaceBegin
	}
}

// awaitRoom waits until a list may continue. It is called, and returns, with the lock held.
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

// wait blocks until there is something to take, and returns true. It returns false when the consumer must end: the
// queue is closed and empty, ctx has ended, or there was nothing to take for a while.
func (q *batchQueue[T]) wait(ctx context.Context) bool {
	for {
		some, filled := q.some(ctx)
		if some || filled == nil {
			return some
		}
		<-filled
	}
}

// some reports whether there is something to take. If there is nothing, but may be later, the consumer must wait for a
// token from filled. Otherwise the consumer has ended, and the next delta starts another.
func (q *batchQueue[T]) some(ctx context.Context) (some bool, filled <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		q.endConsumer()
	case q.deltas > 0:
		q.dismissed = false
		return true, nil
	case q.closed || q.dismissed || q.brief:
		q.endConsumer()
	default:
		q.consumerWaits = true
		if q.filled == nil {
			q.filled = make(chan struct{}, 1)
		}
		return false, q.filled
	}
	return false, nil
}

// forgetConsumer must be called if the consumer has ended and wait has not returned false.
func (q *batchQueue[T]) forgetConsumer() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.endConsumer()
}

// endConsumer forgets the consumer and what only a consumer needs. The lock is held.
func (q *batchQueue[T]) endConsumer() {
	q.consuming, q.brief, q.taken, q.dismissed, q.filled = false, false, false, false, nil
	if q.checks != nil {
		q.checks.Stop()
		q.checks = nil
	}
	if q.deltas == 0 {
		q.ring.release()
	}
}

// check dismisses a consumer that has taken nothing since the last check and waits.
func (q *batchQueue[T]) check() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.checks == nil {
		return // the consumer has ended
	}
	if !q.taken && q.consumerWaits {
		q.dismissed = true
		q.wakeWaiting()
	}
	q.taken = false
	q.checks.Reset(writerRest)
}

// take removes up to maxBatch deltas from the queue and appends them to buf, in the order of their arrival. It never
// waits.
func (q *batchQueue[T]) take(buf []object.Delta[T]) []object.Delta[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(q.deltas, q.opts.maxBatch)
	q.taken = true
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
		q.ring.release() // after a list, most queues have few changes for a long time
	}
	// The index is dropped only when the queue is half empty, so that a queue near its bound does not rebuild it often.
	if q.bytes < q.opts.maxBytes/2 {
		q.latest.stop()
	}
	if q.producerWaits && !q.full() {
		q.producerWaits = false
		token(q.drained)
	}
	return buf
}

// counts returns the number of waiting deltas and their size, and the number of deltas that were replaced by a later
// one.
func (q *batchQueue[T]) counts() (deltas, bytes int, coalesced uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.deltas, q.bytes, q.merged
}

// close makes Push fail, and wait return false once the queue is empty. It may be called more than once.
func (q *batchQueue[T]) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.startConsumer = nil // the runtime may keep a stopped timer for a while, and so the queue, but nothing more
	q.wakeWaiting()
	if q.producerWaits {
		q.producerWaits = false
		token(q.drained)
	}
}

// wakeConsumer makes sure that a consumer takes what there is to take.
func (q *batchQueue[T]) wakeConsumer() {
	if q.deltas == 0 {
		return
	}
	q.wakeWaiting()
	if q.startConsumer != nil && !q.consuming {
		q.consuming, q.brief = true, q.deltas == 1 && q.ring.front().Type == object.Bookmark
		if !q.brief { // the next bookmark comes in a minute
			q.checks = time.AfterFunc(writerRest, q.check)
		}
		q.startConsumer()
	}
}

// wakeWaiting wakes the consumer if it waits.
func (q *batchQueue[T]) wakeWaiting() {
	if q.consumerWaits {
		q.consumerWaits = false
		token(q.filled)
	}
}

// endsList reports whether a delta is the last of a list.
func endsList(t object.ChangeType) bool { return t == object.ReplaceEnd || t == object.ReplaceAbort }

func token(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // a token is waiting already, and its receiver checks again
	}
}

func cost[T any](d *object.Delta[T]) int { return max(d.Item.Size, 0) + deltaBytes }
