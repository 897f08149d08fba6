package informer

import (
	"github.com/mirador-k8s/mirador/reflector"
)

// steps lets a test execute Run one step at a time and in any order. The simulator needs it, because it runs
// everything on one goroutine.
type steps[T any] struct {
	// sink wraps the queue, so that a list that waits for room does not block the test.
	sink func(q *batchQueue[T]) reflector.Sink[T]
	// handlers runs a handler, like fanout.Options.Go.
	handlers func(handler string, run func())
}
