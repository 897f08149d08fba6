package informers_test

import (
	"context"
	"os"
	"testing"

	"go.uber.org/goleak"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

func TestMain(m *testing.M) {
	// The handler that is replaced also sleeps, as long as its one clock for the
	// whole process says; that does not go with the fake time of each test.
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(_ context.Context, err error, msg string, kv ...any) { klog.V(2).ErrorS(err, msg, kv...) },
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(os.Exit))
}
