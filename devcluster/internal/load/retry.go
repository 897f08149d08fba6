package load

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A request is tried this often, with pauses that double from firstPause: about
// a quarter of a minute in all, longer than the API server takes to restart.
const (
	attempts   = 9
	firstPause = 60 * time.Millisecond
)

// retry calls f until it succeeds, fails for good, has been tried often enough
// or ctx ends.
func retry(ctx context.Context, f func() error) error {
	pause := firstPause
	for attempt := 1; ; attempt++ {
		err := f()
		if err == nil || attempt == attempts || !worthRetrying(err) {
			return err
		}
		timer := time.NewTimer(pause/2 + rand.N(pause))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		pause *= 2
	}
}

// worthRetrying says whether the same request may succeed later: the server
// was away or in trouble, rather than of another opinion.
func worthRetrying(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true // the connection, not an answer
	}
	code := status.Status().Code
	return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests
}
