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

// cause returns the error as the caller's function returned it.
func cause(err error) error {
	if e, ok := errors.AsType[*source.Error](err); ok && e.Err != nil {
		return e.Err
	}
	return err
}

func withReason(reason source.Reason, err error) error {
	e := &source.Error{Reason: reason, Err: err}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	return e
}

// reasonOf classifies an error by what can be done about it.
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

// listError classifies an error of List.
func (s *lwSource) listError(err error) error { return withReason(reasonOf(err), err) }

// streamError classifies an error that arrived as an event. It means that the server
// cannot continue the stream, for example after the removal of a broken object. A
// relist follows, unless the server is only busy.
func (s *lwSource) streamError(err error) error {
	reason := reasonOf(err)
	switch reason {
	case source.Throttled, source.Ahead:
	default:
		reason = source.Expired
		if apierrors.IsInternalError(err) && s.retriesInternalErrors() || connectionLost(err) {
			reason = source.Unavailable
		}
	}
	return withReason(reason, err)
}

// connectionLost reports whether an error event comes from the client and not from the
// server: client-go's stream sends one if a ping finds the connection dead, and only
// its text tells. The events before it are valid, so the watch can resume.
func connectionLost(err error) bool {
	return apierrors.HasStatusCause(err, "ClientWatchDecoding") &&
		strings.Contains(err.Error(), "http2: client connection lost")
}

// watchError classifies an error of a plain Watch. If the server is known to be busy or
// unavailable, the watch will resume at its version. Any other error, known or not, may
// mean that the version cannot be resumed, so a relist follows.
func (s *lwSource) watchError(err error) error {
	reason := reasonOf(err)
	switch reason {
	case source.Denied, source.NotServed:
		reason = source.Expired
	case source.Unavailable:
		if !temporary(err) && !ended(err) {
			reason = source.Expired
		}
	}
	return withReason(reason, err)
}

// initialError classifies an error of a Watch with an initial state. If the same
// request may succeed later, it is repeated; otherwise the state is listed.
func (s *lwSource) initialError(err error) error {
	reason := reasonOf(err)
	switch reason {
	case source.Denied: // list may be allowed where watch is not
		reason = source.Unsupported
	case source.Unavailable:
		if !temporary(err) && !ended(err) {
			reason = source.Unsupported
		}
	}
	return withReason(reason, err)
}

// temporary reports whether an error is about the server or the connection, and not
// about the request.
func temporary(err error) bool {
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

// isExpired reports whether the server no longer has a version. Servers up to 1.17
// answer Gone where later ones answer Expired.
func isExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// isAhead reports whether the server has not reached a version yet. The error has a
// cause that says so; servers before 1.18.6 and 1.17 have it only in the message.
func isAhead(err error) bool {
	if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		return true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsTimeout(err) {
		return false
	}
	const message = "Too large resource version"
	if d := status.Status().Details; d != nil {
		for _, c := range d.Causes {
			if c.Message == message {
				return true
			}
		}
	}
	return strings.Contains(status.Status().Message, message)
}
