package cache

import (
	"context"
	"slices"

	"k8s.io/klog/v2"
)

// WaitFor waits until all checkers are done, without polling. It returns false if ctx
// ended first. If what is not empty, WaitFor logs its progress with the caller's file and
// line.
func WaitFor(ctx context.Context, what string, checkers ...DoneChecker) bool {
	logger := klog.FromContext(ctx)
	if what == "" {
		logger = klog.Logger{} // discards everything
	}
	helper, logger := logger.WithCallStackHelper()
	helper()
	logger.Info("Waiting", "for", what)
	over := make(chan DoneChecker)
	for _, c := range checkers {
		go func() {
			select {
			case <-c.Done():
			case <-ctx.Done():
			}
			over <- c // received below, once for each
		}()
	}
	var missing []string
	for range checkers {
		c := <-over
		if IsDone(c) {
			logger.Info("Done waiting", "for", what, "instance", c.Name())
		} else {
			missing = append(missing, c.Name())
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		logger.Info("Timed out waiting", "for", what, "cause", context.Cause(ctx), "instances", missing)
	}
	return len(missing) == 0
}
