package informer

import (
	"github.com/mirador-k8s/mirador/queue"
	"github.com/mirador-k8s/mirador/reflector"
)

// steps lets somebody else do what Run does, one thing at a time and in an order
// of his own: the simulator, beside which no goroutine may run.
type steps[T any] struct {
	// sink stands before the queue, where a list may have to wait for room.
	sink func(q *queue.Batches[T]) reflector.Sink[T]
	// handlers runs a handler, as fanout.Options.Go.
	handlers func(handler string, run func())
}
