package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/query"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// statusOf converts an error to a Status.
func statusOf(err error, t *target) metav1.Status {
	var api apierrors.APIStatus
	switch {
	case errors.As(err, &api):
		return api.Status()
	case errors.Is(err, store.ErrGone):
		return apierrors.NewResourceExpired(err.Error()).ErrStatus
	case errors.Is(err, query.ErrExpired):
		return apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list " +
			"result. Start the list again without it.").ErrStatus
	case errors.Is(err, query.ErrInvalid):
		return apierrors.NewBadRequest(err.Error()).ErrStatus
	case errors.Is(err, query.ErrTooMuch):
		return apierrors.NewRequestEntityTooLargeError(err.Error()).ErrStatus
	}
	return apierrors.NewInternalError(err).ErrStatus
}

// fail answers with a Status. Like an API server, it indents the Status if the request asks for that, or if the
// request asks for a form, such as a Table, that a Status does not have.
func fail(w http.ResponseWriter, r *http.Request, err error, t *target) {
	st := statusOf(err, t)
	st.Kind, st.APIVersion = "Status", "v1"
	recordOf(r).fail(err, &st)
	if st.Details != nil && st.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(st.Details.RetryAfterSeconds)))
	}
	code := int(st.Code)
	if code < 400 || code > 599 {
		code = http.StatusInternalServerError
	}
	if !pretty(r) && acceptsPlain(r) {
		writeJSON(w, code, st)
		return
	}
	b, merr := json.MarshalIndent(st, "", "  ")
	if merr != nil {
		http.Error(w, merr.Error(), http.StatusInternalServerError)
		return
	}
	writeBody(w, code, jsonType, b)
}

// failAbout is fail for requests that are not about objects, such as discovery. client-go drops the text of such an
// answer but shows warnings, so the text is also sent as one.
func failAbout(w http.ResponseWriter, r *http.Request, err error, t *target) {
	warn(w, statusOf(err, t).Message)
	fail(w, r, err, t)
}

// badRequest returns an error with status 400.
func badRequest(format string, args ...any) error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, args...))
}

// tooManyRequests returns an error with status 429 that has a reason for the metrics.
func tooManyRequests(reason, message string, retryAfterSeconds int) error {
	return &refusedError{apierrors.NewTooManyRequests(message, retryAfterSeconds), reason}
}

// errNoCluster is the error for an unknown cluster.
func errNoCluster(name string) error {
	st := apierrors.NewNotFound(clusterResource, clip(name)).ErrStatus
	st.Message += "; /clusters has the names of all clusters"
	return &apierrors.StatusError{ErrStatus: st}
}

// errNoView is the error for API paths at the root. It says where the API is: the client's server URL lacks the path,
// or the client is an old "kubectl get --raw", which drops it.
func errNoView(r *http.Request) error {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: fmt.Sprintf("the Kubernetes API is not at the root of this server: all clusters are at "+
			"%[1]s://%[2]s/fleet, one of them is at %[1]s://%[2]s/clusters/NAME, and /clusters has their names",
			scheme, clip(r.Host)),
	}}
}

// isAPIPath reports whether only a client of the Kubernetes API would request a path.
func isAPIPath(path string) bool {
	return !strings.HasPrefix(path, "/assets/") && slices.ContainsFunc(strings.Split(path, "/"), func(part string) bool {
		return part == "api" || part == "apis" || part == "openapi" || part == "version"
	})
}

// errLoop is the error for a request that the fleet itself sent to /fleet. Each answer would repeat the objects of the
// previous one.
func errLoop() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusLoopDetected, Reason: metav1.StatusReasonBadRequest,
		Message: "this daemon would mirror its own view of all clusters; mirror the clusters themselves",
	}}
}

// errNoResource is an API server's error for an unknown resource.
func errNoResource() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{},
	}}
}

func errNotFound(gr schema.GroupResource, name string) error { return apierrors.NewNotFound(gr, name) }

// tooLarge is an API server's error for a version that it has not reached.
func tooLarge(v, now object.Version) error {
	st := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %s, current: %s", v, now), 1).ErrStatus
	st.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge,
		Message: "Too large resource version"}}
	return &apierrors.StatusError{ErrStatus: st}
}

// unavailable returns an error with status 503 that tells the client to retry after a second.
func unavailable(err error) error {
	st := apierrors.NewServiceUnavailable(err.Error()).ErrStatus
	st.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	return &apierrors.StatusError{ErrStatus: st}
}

// unavailableWithoutRetry returns an error with status 503 and no Retry-After, for a state that will not change soon.
// Clients such as kubectl retry by themselves if there is a Retry-After, and show nothing until they give up.
func unavailableWithoutRetry(err error) error { return apierrors.NewServiceUnavailable(err.Error()) }

// clip shortens a part of a request for an error message.
func clip(s string) string { return clipTo(64, s) }

// clipReason shortens the error of a cluster for a warning, or for an answer about several clusters.
func clipReason(s string) string { return clipTo(200, s) }

func clipTo(limit int, s string) string {
	if len(s) > limit {
		return strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}
