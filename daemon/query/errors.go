package query

import "errors"

// Every error of this package that is about the request wraps one of these; any other error is about an object or the
// program.
var (
	// ErrInvalid says that the request itself is wrong: a selector, an expression, an order or a token. A retry does not
	// help; a server answers 400.
	ErrInvalid = errors.New("invalid request")
	// ErrExpired says that the list of a continue token is no longer held; a server answers 410, and the client has to
	// start the list again.
	ErrExpired = errors.New("the continue token has expired")
	// ErrTooMuch says that a request exceeds a limit.
	ErrTooMuch = errors.New("too much work for one request")
)
