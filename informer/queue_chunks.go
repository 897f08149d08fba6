package informer

import (
	"iter"

	"github.com/mirador-k8s/mirador/object"
)

const (
	chunkLen = 4
	// maxSpare chunks are kept for reuse: enough for a full batch, so that steady traffic allocates nothing.
	maxSpare = 256
)

// chunk is a piece of the queue. Its size is fixed and it never moves.
type chunk[T any] struct {
	deltas [chunkLen]object.Delta[T]
	next   *chunk[T]
}

// chunks is a first-in first-out list of deltas. Positions count from the first
// delta ever pushed; head is that of the oldest one here, tail that of the next
// to come. A position's chunk slot is its remainder, so a chunk starts wherever
// a multiple of chunkLen falls.
type chunks[T any] struct {
	head, tail  uint64
	first, last *chunk[T]
	spare       *chunk[T]
	spares      int
}

// push appends a copy of d and returns a pointer to it.
func (c *chunks[T]) push(d *object.Delta[T]) *object.Delta[T] {
	i := c.tail % chunkLen
	if i == 0 || c.last == nil {
		fresh := c.spare
		if fresh != nil {
			c.spare, fresh.next = fresh.next, nil
			c.spares--
		} else {
			fresh = new(chunk[T])
		}
		if c.last == nil {
			c.first = fresh
		} else {
			c.last.next = fresh
		}
		c.last = fresh
	}
	c.tail++
	at := &c.last.deltas[i]
	*at = *d
	return at
}

// front is the oldest delta; there must be one.
func (c *chunks[T]) front() *object.Delta[T] { return &c.first.deltas[c.head%chunkLen] }

// dropFront removes the oldest delta and clears it for the garbage collector.
func (c *chunks[T]) dropFront() {
	*c.front() = object.Delta[T]{}
	c.head++
	if c.head%chunkLen != 0 {
		return
	}
	done := c.first
	c.first = done.next
	if c.first == nil {
		c.last = nil
	}
	done.next = nil
	if c.spares < maxSpare {
		done.next, c.spare = c.spare, done
		c.spares++
	}
}

// release frees all memory; the list must be empty. Positions continue at the start of a chunk.
func (c *chunks[T]) release() {
	start := (c.tail + chunkLen - 1) / chunkLen * chunkLen
	*c = chunks[T]{head: start, tail: start}
}

// from visits the deltas at position pos and later.
func (c *chunks[T]) from(pos uint64) iter.Seq[place[T]] {
	return func(yield func(place[T]) bool) {
		in, start := c.first, c.head-c.head%chunkLen
		for ; in != nil && start < c.tail; in, start = in.next, start+chunkLen {
			for p := max(pos, start); p < min(c.tail, start+chunkLen); p++ {
				if !yield(place[T]{p, &in.deltas[p%chunkLen]}) {
					return
				}
			}
		}
	}
}
