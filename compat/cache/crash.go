package cache

import (
	"context"
	"errors"
	"fmt"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/mirador-k8s/mirador/source"
)

// panicError is a recovered panic of one of the caller's functions, or of a value that such a function returned. It
// was logged when it happened.
type panicError struct{ value any }

func (e *panicError) Error() string {
	return fmt.Sprintf("a function of the caller panicked: %v", e.value)
}

// isPanic reports whether an error is a recovered panic. Error handlers are not called with it, as in client-go.
func isPanic(err error) bool {
	_, ok := errors.AsType[*panicError](err)
	return ok
}

// recoverPanic is deferred around calls of the caller's functions. It treats a panic as client-go does around an
// iteration of list and watch: it logs the panic, and panics again if utilruntime.ReallyCrash is set. Otherwise it
// sets err, with a reason that leads to a relist after the usual backoff. If enabled is false, the panic passes.
func recoverPanic(ctx context.Context, enabled bool, reason source.Reason, err *error) {
	if !enabled {
		return
	}
	p := recover()
	if p == nil {
		return
	}
	for _, f := range utilruntime.PanicHandlers {
		f(ctx, p)
	}
	if utilruntime.ReallyCrash {
		panic(p)
	}
	*err = &source.Error{Reason: reason, Err: &panicError{p}}
}
