package load

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// grace is how long a request may go on after the context that it was made for
// has ended: long for an answer, short for who pressed Ctrl-C.
const grace = 5 * time.Second

// A request is tried this often, with pauses that double from firstPause: about
// a quarter of a minute in all, longer than the API server takes to restart.
const (
	attempts   = 9
	firstPause = 60 * time.Millisecond
)

// retry calls f until it succeeds, fails for good, has been tried often enough
// or ctx ends. A request that is under way then is let finish, within grace: the
// server may have done half of it. A forced deletion, for one, is two writes,
// and a pod between them waits for a kubelet for ever where there is none.
func retry(ctx context.Context, f func(context.Context) error) error {
	request, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(grace, cancel)
		context.AfterFunc(request, func() { timer.Stop() })
	})()
	pause := firstPause
	for attempt := 1; ; attempt++ {
		err := f(request)
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
