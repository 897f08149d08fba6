package reflector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// errSilent is why a stream was given up that said nothing for too long.
var errSilent = errors.New("the source said nothing for too long")

// watchdog ends an operation on the source that goes silent: a half-open
// connection gives no error, it just never says anything again.
//
// It is told of every word, and looks when its timer rings whether the last one was long
// ago: setting a timer anew is dearer than noting the time.
type watchdog struct {
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	limit   time.Duration
	timer   *time.Timer
	set     time.Duration // the limit that the timer was set for; 0: it has rung
	last    time.Time     // when there was a word
	resting atomic.Bool
}

func newWatchdog(parent context.Context, limit time.Duration) *watchdog {
	ctx, cancel := context.WithCancelCause(parent)
	w := &watchdog{ctx: ctx, cancel: cancel, limit: limit, set: limit, last: time.Now()}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(limit, w.ring)
	return w
}

// heard starts the wait anew.
func (w *watchdog) heard() { w.expect(0) }

// expect is heard, with another limit from now on; 0 is the one before.
func (w *watchdog) expect(limit time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if limit > 0 {
		w.limit = limit
	}
	w.last = time.Now()
	w.resting.Store(false)
	if w.set == 0 || w.limit < w.set {
		w.set = w.limit
		w.timer.Reset(w.limit)
	}
}

// rest holds the wait until heard or expect is called: what the sink takes its time for is
// not the source's silence.
func (w *watchdog) rest() { w.resting.Store(true) }

// ring is called by the timer. If it rings while the watchdog rests, who ends the rest sets it again.
func (w *watchdog) ring() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.set = 0
	if w.resting.Load() {
		return
	}
	if left := w.limit - time.Since(w.last); left > 0 {
		w.set = w.limit
		w.timer.Reset(left)
		return
	}
	w.cancel(errSilent)
}

// explain turns the cancelled context that a read failed with into the reason
// for which it was cancelled.
func (w *watchdog) explain(err error) error {
	if cause := context.Cause(w.ctx); errors.Is(cause, errSilent) {
		return fmt.Errorf("%w (%s)", errSilent, w.limit)
	}
	return err
}

func (w *watchdog) stop() {
	w.rest()
	w.mu.Lock() // not while it rings: that could set it again
	w.timer.Stop()
	w.mu.Unlock()
	w.cancel(nil)
}
