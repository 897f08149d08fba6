package queue

import (
	"errors"
	"fmt"
)

// ErrClosed is what a DeltaFIFO answers after Close, once it is empty.
var ErrClosed = errors.New("the queue is closed")

// KeyError says that the Key function of a DeltaFIFO gave no key for an object.
type KeyError struct {
	// Obj is the object in question.
	Obj any
	// Err is what the Key function said.
	Err error
}

// Error names the type of the object, not its content, which may be long or secret.
func (e KeyError) Error() string {
	return fmt.Sprintf("no key for an object of type %T: %v", e.Obj, e.Err)
}

// Unwrap gives what the Key function said.
func (e KeyError) Unwrap() error { return e.Err }
