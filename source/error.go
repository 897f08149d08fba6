package source

import (
	"errors"
	"fmt"
	"time"
)

// Reason classifies what went wrong by what can be done about it.
type Reason uint8

const (
	// Unavailable is anything that may pass: no connection, a server error, a
	// timeout. Wait and try again.
	Unavailable Reason = iota
	// Expired means that the version asked for is no longer kept: list again.
	Expired
	// Ahead means that the version asked for has not been reached yet, or never
	// was: the source's history may have been set back. Ask for the newest.
	Ahead
	// Throttled means that the source is too busy; wait for RetryAfter.
	Throttled
	// Denied means that the source refuses this user.
	Denied
	// NotServed means that there is no such resource now.
	NotServed
	// Unsupported means that the source does not know this kind of request, such
	// as a watch with initial state.
	Unsupported
	// Refused means that nobody listens: the connection was not accepted.
	Refused
	// Garbled means that what arrived could not be read: cut short or not in the
	// format that was agreed on.
	Garbled
)

var reasonNames = [...]string{"unavailable", "expired", "ahead", "throttled", "denied", "not served", "unsupported",
	"refused", "garbled"}

// String gives the reason in words that suit a metric's label.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}

// Error is a failure with its reason.
type Error struct {
	Reason Reason
	// RetryAfter is how long the source asked to be left alone; 0 if it did not say.
	RetryAfter time.Duration
	Err        error
}

// Error gives the underlying error's text, or the reason where there is none.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Reason.String()
	}
	return e.Err.Error()
}

// Unwrap gives the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// ReasonOf finds the reason in an error; an error without one is Unavailable.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return Unavailable
}

// RetryAfter finds how long the source asked to be left alone, or 0.
func RetryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.RetryAfter
	}
	return 0
}
