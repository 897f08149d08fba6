package informer

import (
	"github.com/mirador-k8s/mirador/reflector"
)

// steps lets a test do what Run does, one step at a time and in an order of its own. The simulator needs it,
// beside which no goroutine may run.
type steps[T any] struct {
	// sink is called in place of the queue, where a list may have to wait for room.
	sink func(q *batchQueue[T]) reflector.Sink[T]
	// handlers runs a handler, as fanout.Options.Go.
	handlers func(handler string, run func())
}
