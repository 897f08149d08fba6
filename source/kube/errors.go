package kube

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/source"
)

const (
	// maxErrorBody bounds how much of an error response is read, maxExcerpt how much of it
	// is quoted if it is not a Status.
	maxErrorBody = 1 << 20
	maxExcerpt   = 200
)

// garbled wraps err as an error with reason Garbled.
func garbled(err error) error {
	return &source.Error{Reason: source.Garbled, Err: err}
}

// broken classifies an error that ended a stream.
func broken(what string, err error) error {
	if _, ok := errors.AsType[*source.Error](err); ok {
		return fmt.Errorf("%s: %w", what, err)
	}
	return &source.Error{Reason: source.Unavailable,
		Err: fmt.Errorf("%s: the connection broke: %w", what, notEOF(bare(err)))}
}

// notEOF replaces io.EOF by io.ErrUnexpectedEOF, because the reader of a stream takes io.EOF
// for the end of the data.
func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%v: %w", err, io.ErrUnexpectedEOF)
	}
	return err
}

// bare removes the URL from an error of net/http, because its query may contain a secret.
func bare(err error) error {
	for {
		wrapped, ok := errors.AsType[*url.Error](err)
		if !ok {
			return err
		}
		err = wrapped.Err
	}
}

// unreachable classifies a request without an answer.
func (s *server) unreachable(err error) error {
	err = notEOF(bare(err))
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	reason, hint := source.Unavailable, "check the network between here and "+s.url.Host
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		reason, hint = source.Refused, "the connection was refused: check that the API server runs and that the config's "+
			"Host is right"
	case isType[*net.DNSError](err):
		hint = "check the host name in the config's Host"
	case isType[x509.UnknownAuthorityError](err), isType[x509.HostnameError](err),
		isType[x509.CertificateInvalidError](err):
		hint = "check the CA in the config's TLSClientConfig"
	}
	return &source.Error{Reason: reason, Err: fmt.Errorf("%w (%s)", err, hint)}
}

func isType[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// refusal classifies an answer other than 200.
func (s *server) refusal(verb string, resp *http.Response, initialState bool) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if ctxErr := resp.Request.Context().Err(); ctxErr != nil && err != nil {
		return ctxErr
	}
	wait := headerRetryAfter(resp.Header)
	status, ok := readStatus(resp.Header.Get("Content-Type"), body)
	if !ok {
		excerpt := strings.ToValidUTF8(string(body[:min(len(body), maxExcerpt)]), "?")
		status = apierrors.NewGenericServerResponse(resp.StatusCode, verb, s.resource, "", strings.TrimSpace(excerpt),
			int(wait/time.Second), true).ErrStatus
	}
	if status.Code == 0 {
		status.Code = int32(resp.StatusCode)
	}
	return statusError(verb, status, wait, initialState)
}

// readStatus decodes the Status that an API server sends in an error response.
func readStatus(contentType string, body []byte) (metav1.Status, bool) {
	w, err := wireFor(contentType)
	if err != nil {
		return metav1.Status{}, false
	}
	var kind typeMeta
	if _, ok := w.(protobufWire); ok {
		if kind, body, err = openEnvelope(body); err != nil {
			return metav1.Status{}, false
		}
	}
	status, err := w.status(kind, body)
	return status, err == nil
}

// statusError makes an error of a Status. errors.As finds client-go's
// *apierrors.StatusError in it.
func statusError(verb string, status metav1.Status, wait time.Duration, initialState bool) error {
	if wait == 0 && status.Details != nil {
		wait = time.Duration(status.Details.RetryAfterSeconds) * time.Second
	}
	reason := classify(verb, status, initialState)
	var err error = &apierrors.StatusError{ErrStatus: status}
	if hint := hints[reason]; hint != "" {
		err = fmt.Errorf("%w (%s)", err, hint)
	}
	return &source.Error{Reason: reason, RetryAfter: max(wait, 0), Err: err}
}

var hints = map[source.Reason]string{
	source.Denied: "check the config's credentials, and that its user may list and watch this resource",
	source.NotServed: "check that the API or the custom resource definition is installed, and group, version and " +
		"namespace are right",
}

// classify returns the reason of a Status.
func classify(verb string, status metav1.Status, initialState bool) source.Reason {
	switch status.Reason {
	case metav1.StatusReasonExpired, metav1.StatusReasonGone:
		return source.Expired
	}
	if tooLarge(status) {
		return source.Ahead
	}
	switch status.Code {
	case http.StatusGone:
		return source.Expired
	case http.StatusTooManyRequests:
		return source.Throttled
	case http.StatusUnauthorized, http.StatusForbidden:
		return source.Denied
	case http.StatusNotFound:
		return source.NotServed
	case http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusNotImplemented:
		return source.Unsupported
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		if verb == "watch" && initialState {
			return source.Unsupported
		}
	}
	return source.Unavailable
}

// tooLarge reports whether the server has not reached the requested version yet. Servers
// since 1.19 say so in a cause; older ones only in the message.
func tooLarge(status metav1.Status) bool {
	const words = "Too large resource version"
	if status.Details != nil {
		for _, c := range status.Details.Causes {
			if c.Type == metav1.CauseTypeResourceVersionTooLarge || c.Message == words {
				return true
			}
		}
	}
	timedOut := status.Code == http.StatusGatewayTimeout || status.Reason == metav1.StatusReasonTimeout
	return timedOut && strings.Contains(status.Message, words)
}

// headerRetryAfter reads the header in both its forms: seconds or a date.
func headerRetryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if v == "" {
		return 0
	}
	if n, err := strconv.Atoi(v); err == nil {
		return time.Duration(min(max(n, 0), math.MaxInt32)) * time.Second
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}
