package source

import (
	"errors"
	"fmt"
	"time"
)

// Reason classifies an error by how the reader can respond to it.
type Reason uint8

const (
	// Unavailable is any temporary failure: no connection, a server error, a timeout.
	// Wait and retry.
	Unavailable Reason = iota
	// Expired means that the requested version is no longer available. Relist.
	Expired
	// Ahead means that the source has not reached the requested version. Its history may
	// have been reset. Request the newest state.
	Ahead
	// Throttled means that the source is overloaded. Wait for RetryAfter.
	Throttled
	// Denied means that the source refuses this user.
	Denied
	// NotServed means that the source does not serve the resource at present.
	NotServed
	// Unsupported means that the source does not support this kind of request, for
	// example a watch with initial state.
	Unsupported
	// Refused means that the connection was refused.
	Refused
	// Garbled means that the response was cut short or malformed.
	Garbled
)

var reasonNames = [...]string{"unavailable", "expired", "ahead", "throttled", "denied", "not served", "unsupported",
	"refused", "garbled"}

// String returns the reason as text, suitable for the label of a metric.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}

// Error is a failure with its reason.
type Error struct {
	Reason Reason
	// RetryAfter is how long the source asked the reader to wait; 0 if it did not.
	RetryAfter time.Duration
	Err        error
}

// Error returns the text of Err, or the reason if Err is nil.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Reason.String()
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// ReasonOf returns the reason of an error. An error without a reason is Unavailable.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return Unavailable
}

// RetryAfter returns how long the source asked the reader to wait, or 0.
func RetryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.RetryAfter
	}
	return 0
}
