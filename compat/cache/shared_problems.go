package cache

import (
	"fmt"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/source"
)

// problem makes known what went wrong: to the error handler what client-go tells
// it, lists and watches that could not be opened; to the log the rest. All of it is
// counted in the engine's Health. It takes no lock of the informer's: see sharedIndexInformer.
func (s *sharedIndexInformer) problem(p informer.Problem) {
	ctx := *s.runContext.Load()
	defer utilruntime.HandleCrashWithContext(ctx) // of the caller's error handler or OnProblem
	if s.extra.OnProblem != nil {
		s.extra.OnProblem(p)
	}
	if isCrash(p.Err) {
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
			logger.V(2).Info("Reading the state failed; trying in another way or later", "type", name, "err",
				err, "wait", p.Wait)
			return
		}
		s.tell(ctx, fmt.Errorf("failed to list %v: %w", name, err))
	case "watch":
		if busy {
			logger.V(2).Info("Watch failed; backing off", "type", name, "err", err, "wait", p.Wait)
			return
		}
		s.tell(ctx, err)
	case "stream":
		logger.V(2).Info("Watch ended with an error", "type", name, "err", err, "wait", p.Wait)
	default:
		utilruntime.HandleErrorWithContext(ctx, err, "An object could not be taken over as it came", "doing", p.Doing,
			"type", name, "key", string(p.Key))
	}
}
