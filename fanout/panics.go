package fanout

import (
	"errors"
	"log/slog"
	"runtime/debug"

	"github.com/mirador-k8s/mirador/object"
)

var errGoexit = errors.New("the handler ended its goroutine with runtime.Goexit")

// failed reports a callback that did not return. Without a recovered value it
// was ended by runtime.Goexit, for a panic always has one.
func (s *Subscription[T]) failed(key object.Key, recovered any) {
	s.panics.Add(1)
	if own := s.onPanic; own != nil {
		s.telling(key, func() { own(recovered) })
	}
	exited := recovered == nil
	if exited {
		recovered = errGoexit
	}
	s.report(key, recovered, debug.Stack())
	if crash := s.fan.opts.Crash; !exited && crash != nil && crash() {
		s.crashing = true
		panic(recovered)
	}
}

func (s *Subscription[T]) report(key object.Key, recovered any, stack []byte) {
	if onPanic := s.fan.opts.OnPanic; onPanic != nil {
		s.telling(key, func() { onPanic(s.Name(), key, recovered, stack) })
		return
	}
	slog.Error("a handler panicked", "handler", s.Name(), "key", string(key), "panic", recovered, "stack", string(stack))
}

// telling calls who is told of a panic, and survives one of his own.
func (s *Subscription[T]) telling(key object.Key, tell func()) {
	defer func() {
		if again := recover(); again != nil {
			slog.Error("the report of a panicking handler panicked", "handler", s.Name(), "key", string(key), "panic", again)
		}
	}()
	tell()
}

// catch reports the panic of a function that is not the handler.
func (s *Subscription[T]) catch() {
	if recovered := recover(); recovered != nil {
		s.panics.Add(1)
		s.report("", recovered, debug.Stack())
		if crash := s.fan.opts.Crash; crash != nil && crash() {
			s.crashing = true
			panic(recovered)
		}
	}
}
