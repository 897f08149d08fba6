package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/mirador-k8s/mirador/reflector"
	"github.com/mirador-k8s/mirador/source"
)

// outcome describes how an iteration of list and watch ended.
type outcome struct {
	// err is for the error handler.
	err error
	// wait is the pause before the next iteration.
	wait time.Duration
	// resume reports that the next iteration can resume the watch without a relist.
	resume bool
}

// iterate steps the engine until something ends the iteration. It begins with a list, or
// resumes at the version reached if relist is false.
func (r *Reflector) iterate(ctx context.Context, relist bool) outcome {
	ctx, stop := context.WithCancelCause(ctx)
	var resync resyncer
	defer func() {
		stop(nil)
		r.engine.Close()
		resync.wg.Wait() // no resync may run after iterate has returned
	}()
	if relist {
		r.engine.Relist()
	}
	internal := NewRetryWithDeadline(r.MaxInternalErrorRetryDuration, time.Minute, apierrors.IsInternalError, r.clock)
	for {
		r.problem = nil
		wait, err := r.engine.Step(ctx)
		if ctx.Err() != nil {
			return outcome{}
		}
		if err != nil {
			return outcome{err: err, wait: max(wait, time.Second)}
		}
		if r.resync > 0 && r.sink.filled {
			resync.start(func() { r.resyncing(ctx, stop) })
		}
		if p := r.problem; p != nil {
			if out, over := r.judge(ctx, p, internal); over {
				out.wait = wait
				return out
			}
		}
		if !r.pause(ctx, wait) {
			return outcome{}
		}
	}
}

// judge decides whether a problem ends the iteration.
func (r *Reflector) judge(ctx context.Context, p *reflector.Problem, internal RetryWithDeadline) (outcome, bool) {
	logger := klog.FromContext(ctx)
	err := cause(p.Err)
	reason := source.ReasonOf(p.Err)
	busy := reason == source.Throttled || reason == source.Refused
	if p.Doing == "decode" {
		r.storeFailed("reading", err)
		return outcome{}, false
	}
	logger.V(4).Info("Reflector has a problem", "doing", p.Doing, "reflector", r.name, "type", r.typeDescription, "err",
		err, "wait", p.Wait)
	switch p.Doing {
	case "list":
		if p.Wait == 0 { // retried at once with other options
			return outcome{}, false
		}
		return outcome{err: fmt.Errorf("failed to list %v: %w", r.typeDescription, err)}, true
	case "initial state":
		if p.Wait == 0 || busy || errors.Is(err, io.ErrUnexpectedEOF) {
			return outcome{}, false
		}
		return outcome{err: fmt.Errorf("failed to list %v: %w", r.typeDescription, err)}, true
	case "watch":
		if busy {
			return outcome{}, false
		}
		return outcome{err: err, resume: reason == source.Unavailable}, true
	}
	// The stream of a watch that was open.
	internal.After(err)
	switch {
	case p.Wait == 0 && reason != source.Expired: // it was silent for too long and is reopened
		return outcome{}, false
	case busy, errors.Is(err, io.EOF), apierrors.IsInternalError(err) && internal.ShouldRetry():
		return outcome{}, false
	case isExpired(err):
		return outcome{}, true
	}
	logger.Info("Warning: watch ended with error", "reflector", r.name, "type", r.typeDescription, "err", err)
	return outcome{}, true
}
