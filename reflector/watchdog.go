package reflector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// errSilent is the cause of cancelling an operation that was silent for too long.
var errSilent = errors.New("the source sent nothing for too long")

// watchdog cancels an operation on the source that is silent for too long. A half-open
// connection returns no error; it only never sends anything again.
//
// reset records the time and leaves the timer alone, because resetting a timer is more
// expensive. When the timer fires, expire compares that time with the limit.
type watchdog struct {
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	limit  time.Duration
	timer  *time.Timer
	set    time.Duration // the limit that the timer was set for; 0 if it has fired
	last   time.Time     // when reset was last called
	paused atomic.Bool
}

func newWatchdog(parent context.Context, limit time.Duration) *watchdog {
	ctx, cancel := context.WithCancelCause(parent)
	w := &watchdog{ctx: ctx, cancel: cancel, limit: limit, set: limit, last: time.Now()}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(limit, w.expire)
	return w
}

// reset restarts the wait, because the source has sent something, and ends a pause.
func (w *watchdog) reset() { w.resetTo(0) }

// resetTo is like reset, and changes the limit unless it is 0.
func (w *watchdog) resetTo(limit time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if limit > 0 {
		w.limit = limit
	}
	w.last = time.Now()
	w.paused.Store(false)
	if w.set == 0 || w.limit < w.set {
		w.set = w.limit
		w.timer.Reset(w.limit)
	}
}

// pause suspends the wait until the next reset: time spent in the sink is not silence of
// the source.
func (w *watchdog) pause() { w.paused.Store(true) }

// expire is called by the timer. If the watchdog is paused, the next reset sets the timer again.
func (w *watchdog) expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.set = 0
	if w.paused.Load() {
		return
	}
	if left := w.limit - time.Since(w.last); left > 0 {
		w.set = w.limit
		w.timer.Reset(left)
		return
	}
	w.cancel(errSilent)
}

// cause returns errSilent if the watchdog cancelled the operation that failed with err, and
// err otherwise.
func (w *watchdog) cause(err error) error {
	if errors.Is(context.Cause(w.ctx), errSilent) {
		return fmt.Errorf("%w (%s)", errSilent, w.limit)
	}
	return err
}

func (w *watchdog) stop() {
	w.pause()
	w.mu.Lock() // an expire that is running could set the timer again
	w.timer.Stop()
	w.mu.Unlock()
	w.cancel(nil)
}
