package cache

import (
	"fmt"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/source"
)

// problem reports a problem: to the error handler if a list or a watch could not be
// opened, as in client-go, otherwise to the log. The engine counts all problems in its
// Health. problem must not take the informer's lock; see sharedIndexInformer.
func (s *sharedIndexInformer) problem(p informer.Problem) {
	ctx := *s.runContext.Load()
	defer utilruntime.HandleCrashWithContext(ctx) // for panics of the caller's error handler and OnProblem
	if s.options.OnProblem != nil {
		s.options.OnProblem(p)
	}
	if isPanic(p.Err) {
		return // logged where it happened
	}
	logger := klog.FromContext(ctx)
	name, err := s.engine.Name(), cause(p.Err)
	reason := source.ReasonOf(p.Err)
	busy := reason == source.Throttled || reason == source.Refused
	switch p.Doing {
	case "handle": // logged where it happened
	case "list", "initial state":
		if p.Wait == 0 || busy && p.Doing != "list" {
			logger.V(2).Info("Reading the state failed; it will be retried", "type", name, "err",
				err, "wait", p.Wait)
			return
		}
		s.reportError(ctx, fmt.Errorf("failed to list %v: %w", name, err))
	case "watch":
		if busy {
			logger.V(2).Info("Watch failed; backing off", "type", name, "err", err, "wait", p.Wait)
			return
		}
		s.reportError(ctx, err)
	case "stream":
		logger.V(2).Info("Watch ended with an error", "type", name, "err", err, "wait", p.Wait)
	default:
		utilruntime.HandleErrorWithContext(ctx, err, "An object could not be processed", "doing", p.Doing,
			"type", name, "key", string(p.Key))
	}
}
