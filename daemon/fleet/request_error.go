package fleet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mirador-k8s/mirador/source"
)

// requestError is a failed request to a cluster. Its text contains nothing of the answer: a
// client that can make the daemon connect to any address must not learn what that address
// answers, which addresses a name resolves to, or which resolver is used. Unwrap returns the
// cause, for the log.
type requestError struct {
	doing, text string
	err         error
}

// Error returns what was attempted and the kind of failure.
func (f *requestError) Error() string {
	if f.doing == "" {
		return f.text
	}
	return f.doing + ": " + f.text
}

// Unwrap returns the cause.
func (f *requestError) Unwrap() error { return f.err }

// requestError describes a failed request. A requestError is returned as it is.
func (h *redactor) requestError(doing string, err error) error {
	if known, ok := errors.AsType[*requestError](err); ok && doing == "" {
		return known
	}
	text := describeError(err)
	switch {
	case text != "":
	case h.detailed:
		text = h.text(err.Error())
	case source.ReasonOf(err) == source.Garbled:
		text = "the answer cannot be read: it was cut short, or is not of a Kubernetes API server"
	default:
		text = "the request failed; the daemon's log says why"
	}
	return &requestError{doing, text, err}
}

// detail returns the cause of a requestError, for the log.
func detail(err error) error {
	if f, ok := errors.AsType[*requestError](err); ok {
		return f.err
	}
	return err
}

// errNotKubernetes reports an answer that is not from a Kubernetes API server.
var errNotKubernetes = errors.New("what answers is not a Kubernetes API server; check the server's URL in the " +
	"kubeconfig")

// tooLargeError reports an answer that is larger than any of a Kubernetes API server.
type tooLargeError struct{ limit int }

// Error returns the text of the error.
func (e *tooLargeError) Error() string {
	return fmt.Sprintf("the answer is larger than %d bytes and was not read to its end; is this a Kubernetes API server?",
		e.limit)
}

// describeError returns the kind of a failure and what to do about it, or "" if the kind is
// unknown.
func describeError(err error) string {
	if errors.Is(err, errLimit) {
		return err.Error() // contains nothing of an answer
	}
	if errors.Is(err, errNotKubernetes) {
		return errNotKubernetes.Error()
	}
	if e, ok := errors.AsType[*tooLargeError](err); ok {
		return e.Error()
	}
	if _, ok := errors.AsType[*redirectError](err); ok {
		return "the server answers with a redirect, which is not followed; check the server's URL in the kubeconfig"
	}
	if text := describeCertificateError(err); text != "" {
		return text
	}
	if text := describeStatus(answerCode(err)); text != "" {
		return text
	}
	if text := describeConnectionError(err); text != "" {
		return text
	}
	switch source.ReasonOf(err) {
	case source.Denied:
		return describeStatus(http.StatusForbidden)
	case source.Refused:
		return describeConnectionError(syscall.ECONNREFUSED)
	}
	return ""
}

// answerCode returns the HTTP status of an error, or 0.
func answerCode(err error) int {
	if code := codeOf(err); code != 0 {
		return code
	}
	if e, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return int(e.ErrStatus.Code)
	}
	return 0
}

func describeStatus(code int) string {
	switch {
	case code == http.StatusUnauthorized:
		return "the credentials were refused (401); check the token or client certificate in the kubeconfig"
	case code == http.StatusForbidden:
		return "forbidden: the credentials are not allowed to get, list and watch this (403); give their user the rights"
	case code == http.StatusNotFound:
		return "the server does not have this (404); check that it is a Kubernetes API server and that its URL is right"
	case code == http.StatusGone:
		return "the server does not keep that version any more (410); it is listed again"
	case code == http.StatusLoopDetected:
		return "its URL is the view of all clusters of the daemon that mirrors it (508), which cannot mirror itself; " +
			"have it leave, and give the URL of the cluster's own API server"
	case code == http.StatusTooManyRequests:
		return "the server is too busy (429); it is asked again"
	case code >= 500 && code < 600:
		return fmt.Sprintf("the server failed (%d); it is asked again", code)
	case code >= 400 && code < 500:
		return fmt.Sprintf("the server refused the request (%d); check that it is a Kubernetes API server", code)
	}
	return ""
}

func describeCertificateError(err error) string {
	const check = "; check certificate-authority-data and the server's URL in the kubeconfig"
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "the server's certificate is not trusted: another authority has signed it" + check
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "the server's certificate is not trusted: it is for another host name" + check
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok && e.Reason == x509.Expired {
		return "the server's certificate is not trusted: it has expired or is not valid yet; renew it, or set the clock"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "the server's certificate is not trusted" + check
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return "the server refused the TLS handshake; check the client certificate in the kubeconfig"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return "the server does not speak TLS; check that its URL in the kubeconfig is right"
	}
	return ""
}

func describeConnectionError(err error) string {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return "the host name cannot be resolved; check the server's URL in the kubeconfig"
	}
	timeout, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, errEnded):
		return errEnded.Error()
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused; check that the API server runs and that its URL in the kubeconfig is right"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "there is no route to the server; check the network"
	case errors.Is(err, context.DeadlineExceeded), isNet && timeout.Timeout():
		return "it timed out: the server does not answer; check the network"
	case errors.Is(err, context.Canceled):
		return "it was stopped"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err,
		syscall.ECONNRESET), errors.Is(err, syscall.EPIPE),
		errors.Is(err, net.ErrClosed):
		return "the connection was closed by the other side; it is tried again"
	}
	return ""
}
