package cache_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/mirador-k8s/mirador/compat/cache"
)

// failingResync is a store whose Resync fails.
type failingResync struct{ cache.Store }

func (failingResync) Resync() error { return errors.New("resync fails on purpose") }

func TestP12_FailedResyncOfAReflectorIsReported(t *testing.T) {
	handlers := utilruntime.ErrorHandlers
	defer func() { utilruntime.ErrorHandlers = handlers }()
	synctest.Test(t, func(t *testing.T) {
		var reported []string
		utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
			func(_ context.Context, err error, _ string, _ ...any) { reported = append(reported, err.Error()) },
		}
		s := failingResync{cache.NewStore(cache.MetaNamespaceKeyFunc)}
		r := cache.NewReflector(newFake("10", pod("a", "1")), &corev1.Pod{}, s, time.Minute)
		runInBackground(t, r.RunWithContext)
		time.Sleep(61 * time.Second)
		synctest.Wait()
		assertStrings(t, "reported", reported, "resync fails on purpose")
	})
}
