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
	// The default handlers limit their rate by one clock for the whole process, which
	// does not work with the fake time of each test.
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(_ context.Context, err error, msg string, kv ...any) { klog.V(2).ErrorS(err, msg, kv...) },
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(os.Exit))
}
