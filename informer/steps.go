package informer

import (
	"github.com/mirador-k8s/mirador/queue"
	"github.com/mirador-k8s/mirador/reflector"
)

// steps lets somebody else do what Run does, one thing at a time and in an order
// of his own: the simulator, beside which no goroutine may run.
type steps[T any] struct {
	// sink stands before the queue, where a list may have to wait for room; idle says whether
	// changes may go past it.
	sink func(q *queue.Batches[T]) (sink reflector.Sink[T], idle func() bool)
	// handlers runs a handler, as fanout.Options.Go.
	handlers func(handler string, run func())
}
