package load

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// grace is how long a request may continue after its context has ended: long for a response, short for a user who
// pressed Ctrl-C.
const grace = 5 * time.Second

// How often a request is tried, with pauses that double from firstPause: about a quarter of a minute in total, longer
// than a restart of the API server.
const (
	attempts   = 9
	firstPause = 60 * time.Millisecond
)

// retry calls f until it succeeds, fails permanently, has been tried often enough or ctx ends. A request that is in
// flight then may finish within grace, because the server may have done half of it: a forced deletion is two writes,
// and a pod between them would wait for a kubelet forever if there is none.
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

// worthRetrying reports whether the same request may succeed later, because the server was unavailable or had an
// internal error.
func worthRetrying(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true // a connection error, not a response
	}
	code := status.Status().Code
	return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests
}
