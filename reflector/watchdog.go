package reflector

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errSilent is why a stream was given up that said nothing for too long.
var errSilent = errors.New("the source said nothing for too long")

// watchdog ends an operation on the source that goes silent: a half-open
// connection gives no error, it just never says anything again.
type watchdog struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	limit  time.Duration
}

func newWatchdog(parent context.Context, limit time.Duration) *watchdog {
	ctx, cancel := context.WithCancelCause(parent)
	w := &watchdog{ctx: ctx, cancel: cancel, limit: limit}
	w.timer = time.AfterFunc(limit, func() { cancel(errSilent) })
	return w
}

// heard starts the wait anew.
func (w *watchdog) heard() { w.timer.Reset(w.limit) }

// rest holds the wait until heard is called: what the sink takes its time for is
// not the source's silence.
func (w *watchdog) rest() { w.timer.Stop() }

// explain turns the cancelled context that a read failed with into the reason
// for which it was cancelled.
func (w *watchdog) explain(err error) error {
	if cause := context.Cause(w.ctx); errors.Is(cause, errSilent) {
		return fmt.Errorf("%w (%s)", errSilent, w.limit)
	}
	return err
}

func (w *watchdog) stop() {
	w.timer.Stop()
	w.cancel(nil)
}
