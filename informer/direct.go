package informer

import (
	"context"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/reflector"
)

// direct is the reflector's way into the store. While there is little to do and nothing
// waits, the goroutine that reads the source puts the changes into the store itself,
// and goes on to call the handlers: the event waits for nobody else to be woken. Everything else
// goes through the queue, so that reading and storing have a goroutine each; so does
// what is to be transformed, for nobody knows how long that takes.
type direct[T any] struct {
	i     *Informer[T]
	queue reflector.Sink[T]
	idle  func() bool // nothing waits in the queue, and nobody is busy with what did
}

// few is how many changes are little. More come at a time only when they come fast, and
// then reading and storing side by side is worth the way.
const few = 2

// Push stores changes, or queues them.
func (d *direct[T]) Push(ctx context.Context, deltas []object.Delta[T]) error {
	if len(deltas) > few || d.i.transform != nil || !d.idle() || !changesOnly(deltas) || !d.i.write.TryLock() {
		return d.queue.Push(ctx, deltas)
	}
	d.i.writing.Store(true)
	d.i.here = true
	defer func() {
		d.i.here = false
		d.i.endWrite()
	}()
	if len(deltas) == 1 && deltas[0].Type <= object.Updated && !d.i.batch.replacing {
		d.i.batch.ahead = 1 // the way of nearly every event, without what is there for others
		if !d.i.alone(&deltas[0]) {
			d.i.put(&deltas[0])
			d.i.commit()
		}
	} else {
		d.i.applyLocked(deltas)
	}
	return nil
}

// changesOnly reports whether no delta belongs to a list. A list waits for room in the
// queue.
func changesOnly[T any](deltas []object.Delta[T]) bool {
	for i := range deltas {
		switch deltas[i].Type {
		case object.Added, object.Updated, object.Deleted, object.Bookmark:
		default:
			return false
		}
	}
	return true
}
