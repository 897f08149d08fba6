package fanout

import (
	"errors"
	"log/slog"
	"runtime/debug"

	"github.com/mirador-k8s/mirador/object"
)

var errGoexit = errors.New("the handler ended its goroutine with runtime.Goexit")

// failed reports a callback that did not return. If recovered is nil, the callback ended
// its goroutine with runtime.Goexit; a panic always has a value.
func (s *Subscription[T]) failed(key object.Key, recovered any) {
	s.panics.Add(1)
	if own := s.onPanic; own != nil {
		s.callReporter(key, func() { own(recovered) })
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

// report passes a panic to Options.OnPanic, or logs it.
func (s *Subscription[T]) report(key object.Key, recovered any, stack []byte) {
	if onPanic := s.fan.opts.OnPanic; onPanic != nil {
		s.callReporter(key, func() { onPanic(s.Name(), key, recovered, stack) })
		return
	}
	slog.Error("a handler panicked", "handler", s.Name(), "key", string(key), "panic", recovered, "stack", string(stack))
}

// callReporter calls an OnPanic function and logs a panic of its own.
func (s *Subscription[T]) callReporter(key object.Key, report func()) {
	defer func() {
		if recovered := recover(); recovered != nil {
			slog.Error("OnPanic panicked", "handler", s.Name(), "key", string(key), "panic", recovered)
		}
	}()
	report()
}

// catch is deferred around Replay, State and their iterators, and reports their panics.
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
