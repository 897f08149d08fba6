package cache

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/mirador-k8s/mirador/source"
)

// cause gives back the error as the caller's function returned it.
func cause(err error) error {
	if e, ok := errors.AsType[*source.Error](err); ok && e.Err != nil {
		return e.Err
	}
	return err
}

func reasoned(reason source.Reason, err error) error {
	e := &source.Error{Reason: reason, Err: err}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	return e
}

// reasonOf says what can be done about an error.
func reasonOf(err error) source.Reason {
	switch {
	case isExpired(err):
		return source.Expired
	case isAhead(err):
		return source.Ahead
	case apierrors.IsTooManyRequests(err):
		return source.Throttled
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return source.Denied
	case apierrors.IsNotFound(err):
		return source.NotServed
	case utilnet.IsConnectionRefused(err):
		return source.Refused
	}
	return source.Unavailable
}

func ended(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// listError classifies what List returned.
func (s *lwSource) listError(err error) error { return reasoned(reasonOf(err), err) }

// streamError classifies an error that came as an event. The server says by it that
// it cannot tell what happened next, as after the removal of a broken object: so the
// state is read again, unless the server is only busy.
func (s *lwSource) streamError(err error) error {
	reason := reasonOf(err)
	switch reason {
	case source.Throttled, source.Ahead:
	default:
		reason = source.Expired
		if apierrors.IsInternalError(err) && s.bearsInternal() || connectionLost(err) {
			reason = source.Unavailable
		}
	}
	return reasoned(reason, err)
}

// connectionLost reports whether an event that says error is no word of the server's:
// client-go's stream makes one of a connection that a ping found dead, and of that only
// the text is left. What was told before it is sound, so the place is not lost.
func connectionLost(err error) bool {
	return apierrors.HasStatusCause(err, "ClientWatchDecoding") &&
		strings.Contains(err.Error(), "http2: client connection lost")
}

// watchError classifies what a plain Watch returned. Where the server is known to
// be busy or away, the place in its history is kept. Anything else, such as a
// refusal or an error that nobody has heard of, may mean that the place is lost:
// then the state is read again.
func (s *lwSource) watchError(err error) error {
	reason := reasonOf(err)
	switch reason {
	case source.Denied, source.NotServed:
		reason = source.Expired
	case source.Unavailable:
		if !passing(err) && !ended(err) {
			reason = source.Expired
		}
	}
	return reasoned(reason, err)
}

// initialError classifies what a Watch that was asked for the state returned. A
// server that may be asked again in the same way is; otherwise the state is listed.
func (s *lwSource) initialError(err error) error {
	reason := reasonOf(err)
	switch reason {
	case source.Denied: // whoever may not watch may perhaps list
		reason = source.Unsupported
	case source.Unavailable:
		if !passing(err) && !ended(err) {
			reason = source.Unsupported
		}
	}
	return reasoned(reason, err)
}

// passing reports whether an error says that the server, or the way to it, is in
// trouble, and nothing about the request.
func passing(err error) bool {
	if apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTimeout(err) {
		return true
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return true
	}
	_, inNet := errors.AsType[net.Error](err)
	_, inURL := errors.AsType[*url.Error](err)
	_, inOS := errors.AsType[syscall.Errno](err)
	return inNet || inURL || inOS
}

// isExpired reports whether a version is no longer kept. Servers up to 1.17 say
// Gone where later ones say Expired.
func isExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// isAhead reports whether a version has not been reached by the server. It says so
// by a cause; servers before 1.18.6 and 1.17 say it in words.
func isAhead(err error) bool {
	if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		return true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsTimeout(err) {
		return false
	}
	const words = "Too large resource version"
	if d := status.Status().Details; d != nil {
		for _, c := range d.Causes {
			if c.Message == words {
				return true
			}
		}
	}
	return strings.Contains(status.Status().Message, words)
}
