package cache

import (
	"context"
	"errors"
	"fmt"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/mirador-k8s/mirador/source"
)

// crashError is the panic of one of the caller's functions, or of something that such a function returned, where
// utilruntime.ReallyCrash lets the program live. It was logged when it happened.
type crashError struct{ value any }

func (e *crashError) Error() string {
	return fmt.Sprintf("a function of the caller panicked: %v", e.value)
}

// isCrash reports whether an error stands for a panic. An error handler is not called with it, as in client-go.
func isCrash(err error) bool {
	_, ok := errors.AsType[*crashError](err)
	return ok
}

// contain is deferred by what calls the caller's functions. It does with a panic what client-go does around an
// iteration of list and watch: it is logged, and goes on while utilruntime.ReallyCrash is set. Otherwise it becomes
// an error with a reason that has the state read again, and requests are spaced as after any failure. Where contains
// is false, the panic passes.
func contain(ctx context.Context, contains bool, reason source.Reason, err *error) {
	if !contains {
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
	*err = &source.Error{Reason: reason, Err: &crashError{p}}
}
