package query

import "errors"

// What a request fails with. Every error of this package that is about the request wraps one
// of these; any other error is about an object or the program.
var (
	// ErrInvalid says that the request itself is wrong: a selector, an expression, an order or a
	// token that does not fit. Asking again does not help; a server answers 400.
	ErrInvalid = errors.New("invalid request")
	// ErrForbidden says that the user may not see what was asked for; a server answers 403.
	ErrForbidden = errors.New("forbidden")
	// ErrExpired says that the list which a continue token belongs to is no longer held; a server
	// answers 410, and the list must begin anew.
	ErrExpired = errors.New("the continue token has expired")
	// ErrTooMuch says that a request needs more work than one request may take.
	ErrTooMuch = errors.New("too much work for one request")
)
