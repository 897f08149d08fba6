package queue

import (
	"errors"
	"fmt"
)

// ErrClosed is returned by Pop after Close, once the queue is empty.
var ErrClosed = errors.New("the queue is closed")

// KeyError is returned if the Key function of a DeltaFIFO failed.
type KeyError struct {
	// Obj is the object without a key.
	Obj any
	// Err is the error of the Key function.
	Err error
}

// Error includes the type of the object, but not its content, which may be long or secret.
func (e KeyError) Error() string {
	return fmt.Sprintf("no key for an object of type %T: %v", e.Obj, e.Err)
}

// Unwrap returns the error of the Key function.
func (e KeyError) Unwrap() error { return e.Err }
