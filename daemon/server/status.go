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

// statusOf turns whatever went wrong into what a Kubernetes client understands.
func statusOf(err error, t *target) metav1.Status {
	var api apierrors.APIStatus
	switch {
	case errors.As(err, &api):
		return api.Status()
	case errors.Is(err, store.ErrGone):
		return apierrors.NewResourceExpired(err.Error()).ErrStatus
	case errors.Is(err, query.ErrExpired):
		return apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list " +
			"result. " +
			"Start the list again without it.").ErrStatus
	case errors.Is(err, query.ErrForbidden):
		return apierrors.NewForbidden(t.groupResource(), t.name, err).ErrStatus
	case errors.Is(err, query.ErrInvalid):
		return apierrors.NewBadRequest(err.Error()).ErrStatus
	case errors.Is(err, query.ErrTooMuch):
		return apierrors.NewRequestEntityTooLargeError(err.Error()).ErrStatus
	}
	return apierrors.NewInternalError(err).ErrStatus
}

// fail answers with a Status. Like an API server it prints one for people where they ask for that,
// and also where a form of objects was asked for that a Status does not have.
func fail(w http.ResponseWriter, r *http.Request, err error, t *target) {
	st := statusOf(err, t)
	st.Kind, st.APIVersion = "Status", "v1"
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

// badRequest says what is wrong with a request.
func badRequest(format string, args ...any) error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, args...))
}

// errNoCluster says that there is no cluster of a name.
func errNoCluster(name string) error {
	st := apierrors.NewNotFound(clusterResource, clip(name)).ErrStatus
	st.Message += "; /clusters has the names of those that there are"
	return &apierrors.StatusError{ErrStatus: st}
}

// errNoView says where the API is, to a client that looks for it at the root: its server's URL lacks the path, or it
// is "kubectl get --raw" of an old version, which drops that path.
func errNoView(r *http.Request) error {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: fmt.Sprintf("the Kubernetes API is not at the root of this server: all clusters are at "+
			"%[1]s://%[2]s/fleet, "+
			"one of them is at %[1]s://%[2]s/clusters/NAME, and /clusters has their names", scheme, clip(r.Host)),
	}}
}

// isAPIPath reports whether a client of the Kubernetes API has asked for a path.
func isAPIPath(path string) bool {
	return !strings.HasPrefix(path, "/assets/") && slices.ContainsFunc(strings.Split(path, "/"), func(part string) bool {
		return part == "api" || part == "apis" || part == "openapi" || part == "version"
	})
}

// errLoop refuses the fleet's own request for all of its clusters. Each answer would have the objects of the last one
// once more.
func errLoop() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusLoopDetected, Reason: metav1.StatusReasonBadRequest,
		Message: "this daemon would mirror its own view of all clusters; mirror the clusters themselves",
	}}
}

// errNoResource is the server's own word for a path that leads nowhere.
func errNoResource() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{},
	}}
}

func errNotFound(gr schema.GroupResource, name string) error { return apierrors.NewNotFound(gr, name) }

// tooLarge is an API server's word for a version that it has not reached.
func tooLarge(v, now object.Version) error {
	st := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %s, current: %s", v, now), 1).ErrStatus
	st.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge,
		Message: "Too large resource version"}}
	return &apierrors.StatusError{ErrStatus: st}
}

// unavailable is an answer to try again in a moment.
func unavailable(err error) error {
	st := apierrors.NewServiceUnavailable(err.Error()).ErrStatus
	st.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	return &apierrors.StatusError{ErrStatus: st}
}

// unavailableNow is an answer that will be the same in a moment. Clients such as kubectl try again by themselves
// where they are told when, and show nothing until they have given up.
func unavailableNow(err error) error { return apierrors.NewServiceUnavailable(err.Error()) }

// clip keeps what a stranger sent short.
func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}

// maxReason is how much of an error a warning or an answer about several clusters shows.
const maxReason = 200

// short cuts a text that others have written.
func short(text string) string {
	if len(text) > maxReason {
		return strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	return text
}
